"""What decides: it neither waits nor does I/O."""
