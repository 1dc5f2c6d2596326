"""Rules about the names of files, and arguments that name files. Pure."""
