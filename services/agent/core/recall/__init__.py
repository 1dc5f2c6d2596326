"""Queries over the log of messages, and the merge of two rankings."""
