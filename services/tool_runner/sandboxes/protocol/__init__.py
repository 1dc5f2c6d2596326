"""The protocol between the runner and a worker, whatever sandbox it is in; `wire.py` has the frames. Pure."""
