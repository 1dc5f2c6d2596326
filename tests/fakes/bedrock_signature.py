"""Signature V4 as AWS checks it, written from its documentation so that the code under test is not its own judge.

Source: docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hashlib
import hmac
import re
from urllib.parse import quote

from tests.fakes.http import Request

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)"
)


def complain(request: Request, access_key: str, secret: str, service: str = "bedrock") -> str | None:
    """Returns the fault of a request's signature, or None."""
    found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    if found is None:
        return "Authorization header requires 'Credential', 'SignedHeaders' and 'Signature'"
    given, day, region, signed_for, names, signature = found.groups()
    if given != access_key:
        return "The security token included in the request is invalid."
    stamp = request.headers.get("x-amz-date", "")
    signed = names.split(";")
    if signed_for != service or not stamp.startswith(day) or not {"host", "x-amz-date"} <= set(signed):
        return "Credential should be scoped to correct service: 'bedrock'."
    if "x-amz-security-token" in request.headers and "x-amz-security-token" not in signed:
        return "The session token is not signed."
    query = "&".join(sorted(f"{_quoted(name)}={_quoted(value)}" for name, value in request.query.items()))
    headers = "".join(f"{name}:{' '.join(request.headers[name].split())}\n" for name in signed)
    body = hashlib.sha256(request.body).hexdigest()
    # The path as it came, encoded once more.
    canonical = "\n".join((request.method, quote(request.path, safe="/-_.~"), query, headers, names, body))
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    if hmac.new(key, text.encode(), "sha256").hexdigest() != signature:
        return "The request signature we calculated does not match the signature you provided."
    return None


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")
