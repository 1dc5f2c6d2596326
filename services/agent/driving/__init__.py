"""The replica as driver and owner of runs."""
