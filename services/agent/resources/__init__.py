"""Nouns of the API that are no part of a turn: one room each, with the same file names."""
