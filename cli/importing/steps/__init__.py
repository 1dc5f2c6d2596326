"""The steps of an import, one kind after the other. Each skips rows that are here already, so it may be repeated."""
