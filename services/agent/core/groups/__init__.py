"""Groups of agents in the loop: who speaks next, and what they are told."""
