"""What the runner and a worker say to one another, whatever sandbox it is in; `wire.py` has the frames."""
