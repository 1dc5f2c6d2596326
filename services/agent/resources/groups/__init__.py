"""Groups of agents."""
