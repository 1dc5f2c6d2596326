"""The `loci` command: `loci run` (the supervisor of one machine) and `loci chat`."""
