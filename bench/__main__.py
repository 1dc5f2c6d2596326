"""`python -m bench [turns | llm | prefix | history | search | tools | gateway | parsers | probe]`.

See the modules of these names. Default: turns.
"""

import sys

from bench import gateway, history, llm, parsers, prefix, probe, search, tools, turns

BENCHMARKS = {
    "turns": turns.main,
    "llm": llm.main,
    "prefix": prefix.main,
    "history": history.main,
    "search": search.main,
    "tools": tools.main,
    "gateway": gateway.main,
    "parsers": parsers.main,
    "probe": probe.main,
}

named = sys.argv[1:2] and sys.argv[1] in BENCHMARKS
BENCHMARKS[sys.argv[1] if named else "turns"](sys.argv[2 if named else 1 :])
