"""Schemas of tools: derived from their source by syntax alone, and arguments held against them."""
