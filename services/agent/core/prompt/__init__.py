"""The system prompt and the parts it is compiled from."""
