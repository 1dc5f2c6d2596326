"""Templates of agents, their versions and deployments."""
