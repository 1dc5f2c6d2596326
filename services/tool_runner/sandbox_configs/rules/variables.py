"""Rules for names and values of environment variables. Pure."""

import re
from collections.abc import Sequence

from services.common.core.refusals import Refused
from services.tool_runner.sandbox_configs.model import VariableSettings

MOST_VARIABLES = 256
_LONGEST_NAME = 255
_MOST_BYTES = 64 * 1024
# Of one owner: what is handed to a program at its start has a limit, and several owners' come together.
_MOST_BYTES_TOGETHER = 256 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_PROXIES = {f"{name}_PROXY" for name in ("HTTP", "HTTPS", "FTP", "ALL", "NO")}
_RESERVED = {
    # Where programs are found, and what they are made of.
    *("PATH", "HOME", "TMPDIR", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE"),
    *("NODE_OPTIONS", "NODE_PATH", "BASH_ENV", "GCONV_PATH", "GLIBC_TUNABLES"),
    # The way out of a sandbox.
    *_PROXIES,
    *(name.lower() for name in _PROXIES),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
}
_RESERVED_BEGINNINGS = ("LOCI_", "LD_", "DYLD_")


def check_all(drafts: Sequence[VariableSettings]) -> None:
    """Raises Refused (ENVIRONMENT_INVALID), naming the variable; never its value."""
    if len(drafts) > MOST_VARIABLES:
        raise invalid(f"there can be at most {MOST_VARIABLES} environment variables, not {len(drafts)}")
    seen: set[str] = set()
    for draft in drafts:
        check(draft)
        if draft.key in seen:
            raise invalid(f"the environment variable {draft.key} is given twice")
        seen.add(draft.key)
    together = sum(len(draft.key) + len(draft.value.encode()) for draft in drafts)
    if together > _MOST_BYTES_TOGETHER:
        raise invalid(f"the environment variables have {together} bytes; all together may have {_MOST_BYTES_TOGETHER}")


def check(draft: VariableSettings) -> None:
    """Raises Refused (ENVIRONMENT_INVALID)."""
    check_name(draft.key)
    check_value(draft.key, draft.value)


def check_name(name: str) -> None:
    """Raises Refused (ENVIRONMENT_INVALID)."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise invalid(
            f"{name[:80]!r} cannot be the name of an environment variable: 1 to {_LONGEST_NAME} letters, digits and "
            "'_', the first no digit"
        )
    if name in _RESERVED or name.startswith(_RESERVED_BEGINNINGS):
        raise invalid(
            f"the environment variable {name} is set by Loci or changes how programs start; choose another name"
        )


def check_value(name: str, value: str) -> None:
    """Raises Refused (ENVIRONMENT_INVALID)."""
    size = len(value.encode())
    if size > _MOST_BYTES:
        raise invalid(f"the value of {name} has {size} bytes; at most {_MOST_BYTES} are possible")
    if "\x00" in value:
        raise invalid(f"the value of {name} has the character NUL, which an environment variable cannot hold")


def nothing_to_keep(name: str) -> Refused:
    """Returns the refusal of the mask as the value of a variable that is not there."""
    return invalid(f"the value of {name} is the mask, and there is none to keep; give the value itself")


def invalid(sentence: str) -> Refused:
    """Returns the refusal of a variable."""
    return Refused("ENVIRONMENT_INVALID", sentence)


def invalid_field(name: str, problem: str) -> Refused:
    """Returns the refusal of a variable that names a field."""
    return invalid(f"{name} {problem}")
