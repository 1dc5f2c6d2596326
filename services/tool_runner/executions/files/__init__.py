"""Files that calls are given and make."""
