"""Rows of the old server as requests of this one. No I/O: a row goes in, a request comes out, or why there is none."""
