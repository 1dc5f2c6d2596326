"""The memory tools of agents."""
