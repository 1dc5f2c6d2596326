"""`python -m bench [NAME]`: one of BENCHMARKS, each of which is a module here. Default: turns."""

import sys

from bench import gateway, groups, history, kills, llm, mcp_servers, prefix, probe, search, tools, turns

BENCHMARKS = {
    "turns": turns.main,
    "llm": llm.main,
    "prefix": prefix.main,
    "history": history.main,
    "search": search.main,
    "tools": tools.main,
    "mcp": mcp_servers.main,
    "gateway": gateway.main,
    "groups": groups.main,
    "kills": kills.main,
    "probe": probe.main,
}

named = sys.argv[1:2] and sys.argv[1] in BENCHMARKS
BENCHMARKS[sys.argv[1] if named else "turns"](sys.argv[2 if named else 1 :])
