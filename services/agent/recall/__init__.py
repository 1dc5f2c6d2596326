"""Recall: what was said is found again, by its words and by its meaning."""
