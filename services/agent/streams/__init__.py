"""What readers of runs are shown, live and from storage, on every replica."""
