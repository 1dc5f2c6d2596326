"""Variables, headers and arguments that are secret: by their names, and by what the values look like. Pure.

JIRA_TOKEN=...  --api-key=...  --password ...  Authorization: ...      by the name
ghp_...  postgresql://user:PASSWORD@host/  https://host/?api_key=...   by the value
DATA_DIR=/data  JIRA_URL=https://acme.example  NODE_ENV=production     not secret
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote

MASK = "********"

# A longer value is a text or a program, and looked at by its name alone.
_LONGEST = 4_096
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OF_SECRETS = """
    apikey auth authorization bearer cookie credential credentials dsn jwt key passphrase passwd password pat pwd secret
    secrets session signature token
"""
_SECRET_WORDS = frozenset(_OF_SECRETS.split())
_SECRET_ENDS = ("apikey", "passwd", "password", "secret", "token")
# What a name ends with that speaks of a secret, and is none: TOKEN_FILE, KEY_ID, AUTH_URL.
_OF_OTHERS = """
    alg algorithm count dir directory enabled endpoint expiry file folder header host id issuer length limit max method
    mode name path port prefix provider region scheme scope scopes size store timeout ttl type uri url
"""
_HARMLESS_ENDS = frozenset(_OF_OTHERS.split())
_HARMLESS_VALUES = frozenset(("", "true", "false", "none", "null", "yes", "no", "basic", "bearer", "oauth", "default"))
_TOKEN = re.compile(
    r"(sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abprs]|shpat|figd|sbp|ntn|secret|hf|npm|pypi|dop_v1|lin_api)[-_]\S{8,}"
    r"|AKIA[A-Z0-9]{12,}|AIza\S{20,}|eyJ[\w-]{8,1000}\.[\w-]{8,1000}\.?[\w-]*"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    re.IGNORECASE,
)
# With letters and digits in it, as no word has them.
_PIECE = re.compile(r"[A-Za-z0-9]{20,}")
_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]{0,20}://[^\s/@:]*:([^\s/@]+)@", re.IGNORECASE)
_QUERY = re.compile(r"[?&]([^=&#\s]{1,100})=([^&#\s]+)")
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)")
_ASSIGNMENT = re.compile(r"(?:--?)?([A-Za-z][\w.-]*)(?:=|:\s+)(.+)", re.DOTALL)
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|Bot)\s+(\S+)", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Returns whether a variable, header or option of this name holds a secret."""
    words = [word.lower() for word in _WORD.findall(name)]
    secret = any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDS) for word in words)
    return secret and words[-1] not in _HARMLESS_ENDS


def secrets_of_value(name: str, value: str) -> tuple[str, ...]:
    """Returns the secret parts of the value of a variable or header; all of it where the name says so."""
    if is_secret_name(name) and value.strip().lower() not in _HARMLESS_VALUES:
        scheme = _SCHEME.fullmatch(value.strip())
        return (value, scheme[1]) if scheme else (value,)
    return _by_form(value)


def secrets_of_arguments(arguments: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the secret parts of each argument of a command."""
    found: list[tuple[str, ...]] = []
    before = ""
    for argument in arguments:
        option = _FLAG.fullmatch(before)
        assignment = _ASSIGNMENT.fullmatch(argument)
        if assignment:
            found.append(secrets_of_value(assignment[1], assignment[2]))
        elif option and not argument.startswith("-"):
            found.append(secrets_of_value(option[1], argument))
        else:
            found.append(_by_form(argument))
        before = argument
    return found


def mask_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """Returns the arguments with a mask for each secret part."""
    found = zip(arguments, secrets_of_arguments(arguments), strict=True)
    return tuple(_mask(argument, secrets) for argument, secrets in found)


def unmask_arguments(update: Sequence[str], present: Sequence[str]) -> tuple[str, ...] | None:
    """Returns what was written, with what is there where it says the mask; None for a mask of nothing."""
    there: dict[tuple[str, str], str] = {}
    masked = mask_arguments(present)
    for key, argument in zip(_keys(masked), present, strict=True):
        there.setdefault(key, argument)
    chosen = [there.get(key) if MASK in word else word for key, word in zip(_keys(update), update, strict=True)]
    known = tuple(word for word in chosen if word is not None)
    return known if len(known) == len(chosen) else None


def _keys(masked: Sequence[str]) -> list[tuple[str, str]]:
    """Returns by what an argument is known: itself, and the one before where it is all masked."""
    return [(before if word == MASK else "", word) for before, word in zip(("", *masked), masked, strict=False)]


def _by_form(value: str) -> tuple[str, ...]:
    if len(value) > _LONGEST:
        return ()
    secrets = [match[0] for match in _TOKEN.finditer(value)]
    pieces = (match[0] for match in _PIECE.finditer(value))
    secrets += [piece for piece in pieces if not (piece.isalpha() or piece.isdigit())]
    for match in _PASSWORD.finditer(value):
        secrets += [match[1], *([unquote(match[1])] if "%" in match[1] else [])]
    secrets += [match[2] for match in _QUERY.finditer(value) if is_secret_name(match[1])]
    return tuple(dict.fromkeys(secrets))


def _mask(text: str, secrets: Sequence[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text
