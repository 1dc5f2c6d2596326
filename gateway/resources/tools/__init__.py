"""The catalogue of tools, and runs of tools outside of turns."""
