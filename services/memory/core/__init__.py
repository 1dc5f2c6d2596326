"""The deciding part: it neither waits nor does I/O."""
