"""The REST and SSE edge of Loci: authenticates, translates to gRPC and back, streams. It keeps nothing.

A request passes `server/middleware.py` (trace, credentials, limits), a handler in `resources/`, and at most a few
RPCs (`peers.py`). Bodies are typed there; answers are dicts that `rest/convert.py` makes from protobuf by one generic
rule.
"""

VERSION = "0.1.0"
# Of the server whose API this is. Terminal clients look at it, and tell people to update one that is older.
API_VERSION = "0.16.8"
