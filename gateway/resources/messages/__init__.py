"""Messages: turns, stored messages, searches."""
