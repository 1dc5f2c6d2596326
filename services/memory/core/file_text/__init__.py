"""The text of files: kinds, pages, views, names, search by patterns."""
