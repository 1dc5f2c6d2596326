"""Where a tool's connections go: who it may reach, secrets that it never sees, and Loci itself."""
