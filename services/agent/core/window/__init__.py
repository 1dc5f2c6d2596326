"""The size of the window, and the ways to make a history smaller. context.py chooses the messages to show."""
