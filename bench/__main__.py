"""`python -m bench [turns | prefix | history | search]`: see the modules of these names; turns when none is named."""

import sys

from bench import history, prefix, search, turns

BENCHMARKS = {"turns": turns.main, "prefix": prefix.main, "history": history.main, "search": search.main}

named = sys.argv[1:2] and sys.argv[1] in BENCHMARKS
BENCHMARKS[sys.argv[1] if named else "turns"](sys.argv[2 if named else 1 :])
