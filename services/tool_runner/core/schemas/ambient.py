"""Names that a tool's source may use without an import, as in the reference. Pure; the worker has the same rule.

Those of `typing`, `typing` itself, and Pydantic's `BaseModel` and `Field`. A test holds this beside the worker's.
"""

import builtins
import typing

_PYDANTIC = frozenset({"BaseModel", "Field"})
_MODULE = frozenset({"__name__", "__doc__", "__builtins__", "__spec__", "__loader__", "__package__", "client"})
AMBIENT = frozenset(typing.__all__) | _PYDANTIC | {"typing"}
KNOWN = AMBIENT | frozenset(dir(builtins)) | _MODULE
