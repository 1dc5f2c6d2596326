"""What breaks a rule, as the pure modules say it. Servicers answer INVALID_ARGUMENT."""


class Refused(Exception):
    """`message` is a sentence that says how to do better; `reason` is for programs."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
