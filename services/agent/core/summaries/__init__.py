"""Summaries for what leaves the window: settings, requests, texts. When and where to cut: ../window/compaction.py."""
