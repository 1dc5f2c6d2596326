"""`python -m bench [turns | prefix | history]`: see the modules of these names; turns when none is named."""

import sys

from bench import history, prefix, turns

BENCHMARKS = {"turns": turns.main, "prefix": prefix.main, "history": history.main}

named = sys.argv[1:2] and sys.argv[1] in BENCHMARKS
BENCHMARKS[sys.argv[1] if named else "turns"](sys.argv[2 if named else 1 :])
