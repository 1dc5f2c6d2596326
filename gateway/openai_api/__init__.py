"""Agents as models of OpenAI's API."""
