"""`python -m bench`: see turns.py."""

from bench.turns import main

main()
