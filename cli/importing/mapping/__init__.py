"""Rows of the old server as requests here. No I/O: a row goes in; a request comes out, or a reason to skip it."""
