"""`loci import --verify`: asks the old server and this one the same client calls, and names each difference.

calls.py has the calls, comparison.py says what differs in two answers (both without I/O), walk.py makes the calls.
"""
