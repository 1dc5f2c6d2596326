"""Steps of runs."""
