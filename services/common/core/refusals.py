"""The error of a broken rule, as pure modules raise it. Servers answer INVALID_ARGUMENT."""


class Refused(Exception):
    """A request breaks a rule. `message` is a sentence that says how to do better; `reason` is for programs."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
