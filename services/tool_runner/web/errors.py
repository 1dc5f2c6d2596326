"""Trouble on the web, as a sentence for the model."""


class WebError(Exception):
    """Nothing was found or fetched; the text says why, and what can be done."""
