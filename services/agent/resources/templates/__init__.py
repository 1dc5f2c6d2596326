"""Templates of agents, and their versions."""
