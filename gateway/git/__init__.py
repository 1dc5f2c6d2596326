"""An agent's memory as a git repository: its blocks as files, their versions as commits, a push as edits."""
