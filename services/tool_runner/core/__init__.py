"""The pure part: plain values, ports and rules. Nothing in here waits or does I/O."""
