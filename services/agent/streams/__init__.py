"""The streams of runs for readers, live and from storage, on every replica."""
