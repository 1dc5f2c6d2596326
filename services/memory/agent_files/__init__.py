"""Files as agents see them: attached, open, in view."""
