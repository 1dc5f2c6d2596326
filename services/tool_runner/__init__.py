"""The tool runner: the catalogue of tools, and the sandboxes in which custom tools act at most once."""
