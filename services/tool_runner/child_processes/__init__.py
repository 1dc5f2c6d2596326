"""Work on data that could exhaust a process, done in short-lived child processes with limits."""
