"""Messages that are sent to agents at their time."""
