"""Folders of files: parsed, cut into passages, viewed and searched."""
