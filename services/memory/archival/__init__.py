"""Archives of passages: what may be stored, how it is embedded and found again."""
