"""Requests for pages in the tests' short form."""

from typing import Any

from loci.common.v1.page_pb2 import ORDER_ASCENDING, ORDER_DESCENDING, PageRequest

_NAMES = ("page_size", "page_token", "after", "before")


def paged(**fields: Any) -> dict[str, Any]:
    """Returns the fields of a list request with what says which page in `page`; `ascending`, `descending`: its order.

    With none of them there is no `page`, as a client's first request may have none.
    """
    page: dict[str, Any] = {name: fields.pop(name) for name in _NAMES if name in fields}
    ascending = fields.pop("ascending", None)
    if "descending" in fields:
        ascending = not fields.pop("descending")
    if ascending is not None:
        page["order"] = ORDER_ASCENDING if ascending else ORDER_DESCENDING
    return fields | {"page": PageRequest(**page)} if page else fields
