"""Why a file has no text."""


class Unreadable(Exception):
    """The file cannot be read. Its text is a sentence for whoever uploaded it."""
