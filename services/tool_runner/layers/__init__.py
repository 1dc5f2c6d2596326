"""Packages of tools: what `pip_requirements` and `npm_requirements` name, installed once, found by every call."""
