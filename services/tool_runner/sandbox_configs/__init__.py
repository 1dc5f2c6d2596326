"""Environment variables of agents and tools, and the sandbox settings of a tenant."""
