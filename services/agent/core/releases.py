"""What another release wrote. Pure."""


class NewerRelease(ValueError):
    """It was written by a newer release: a replica of that can read it."""
