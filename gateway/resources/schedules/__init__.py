"""Messages that are sent at their time."""
