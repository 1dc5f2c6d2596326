"""Edits of the values of blocks, and ways back."""
