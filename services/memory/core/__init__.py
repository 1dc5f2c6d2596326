"""Blocks: what may be stored, how edits change them, their versions."""
