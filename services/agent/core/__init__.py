"""The pure part: the turn and the values it is made of. Neither waits nor does I/O. Begin with turn.py."""
