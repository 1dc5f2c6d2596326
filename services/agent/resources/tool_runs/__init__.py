"""Tool calls outside of turns."""
