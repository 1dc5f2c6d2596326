"""The connections of tools: hosts they may reach, secrets they never see, and Loci itself."""
