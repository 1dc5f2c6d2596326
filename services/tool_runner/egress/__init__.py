"""Where a tool's connections go: hosts it may reach, secrets it never sees, and Loci itself."""
