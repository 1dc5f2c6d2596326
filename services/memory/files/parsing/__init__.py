"""Parsers that take the text out of a file. They run in the parsing child alone: see child.py."""
