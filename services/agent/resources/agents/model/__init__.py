"""The settings of agents and the rules for them. Pure."""
