"""`loci import`: brings what a Letta V1 server 0.16.8 (retired) holds in its Postgres over into this Loci.

schema.py has what is known of that database, source.py reads it, mapping/ makes requests of its rows (without I/O),
steps/ send them in an order in which every reference is satisfied, report.py keeps what came over and what did not.
"""
