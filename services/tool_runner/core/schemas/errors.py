"""Why a source gives no tool. Pure."""


class SchemaError(ValueError):
    """The source gives no tool. `reason` is UPPER_SNAKE and stable; the text says what to change."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
