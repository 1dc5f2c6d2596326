"""The REST and SSE edge of Loci: authenticates, translates to gRPC and back, streams. It keeps nothing.

A request passes `edge.py` (trace, credentials, limits), a handler in `routes/`, and at most a few RPCs (`peers.py`).
Bodies are typed in `bodies/`; answers are dicts that `convert.py` makes from protobuf by one generic rule.
"""

VERSION = "0.1.0"
