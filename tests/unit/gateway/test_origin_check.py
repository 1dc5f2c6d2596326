"""Whom websites cannot pass for, where nobody is asked for a credential."""

import pytest

from gateway.access.auth import Authenticator
from gateway.access.origin_check import OriginCheck
from services.common.errors import PermissionDenied

OUR_PAGE = {b"host": b"127.0.0.1:8283", b"origin": b"http://127.0.0.1:8283"}
METHODS = ("POST", "PUT", "PATCH", "DELETE", "WEBSOCKET")


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1:8283", "127.0.0.2", "[::1]:8283", "192.0.2.7:8283", "localhost", "LOCALHOST.:8283"),
        *("a.localhost:80", "gateway:8283", "loci.example.com", "Loci.Example.COM:443", ""),
    ],
)
def test_by_which_names_one_comes(host: str) -> None:
    OriginCheck(["loci.example.com", "gateway"]).check("POST", {b"host": host.encode()})


@pytest.mark.parametrize(
    "host",
    [
        *("evil.test", "evil.test:8283", "127.0.0.1.evil.test", "localhost.evil.test:8283"),
        *("loci.example.com.evil.test", "x@evil.test", "[::1", ":8283", "evil\xff.test", "evil", "evil:8283"),
    ],
)
@pytest.mark.parametrize("method", ["GET", *METHODS])
def test_a_name_that_resolves_to_us_does_not_open(host: str, method: str) -> None:
    with pytest.raises(PermissionDenied, match="LOCI_ALLOWED_HOSTS"):
        OriginCheck(["loci.example.com"]).check(method, {b"host": host.encode("latin-1")})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "origin",
    [
        *("https://evil.test", "null", "http://127.0.0.1:9999", "http://localhost:8283", "file://", "https://["),
        *("http://127.0.0.1", "ftp://127.0.0.1:8283", "127.0.0.1:8283"),
    ],
)
def test_pages_of_other_origins_do_nothing(method: str, origin: str) -> None:
    page = OUR_PAGE | {b"origin": origin.encode()}
    with pytest.raises(PermissionDenied, match="LOCI_CORS_ORIGINS"):
        OriginCheck(["127.0.0.1"]).check(method, page)
    OriginCheck(origins=[origin]).check(method, page)
    OriginCheck().check("GET", page)


@pytest.mark.parametrize("method", METHODS)
def test_our_own_pages_do(method: str) -> None:
    OriginCheck().check(method, OUR_PAGE)
    # Behind something that tells us another host than the browser was told.
    check = OriginCheck(["gateway"], ["https://loci.test"])
    check.check(method, {b"host": b"gateway:8283", b"origin": b"https://loci.test"})


async def test_who_is_judged() -> None:
    page = {b"host": b"evil.test", b"origin": b"https://evil.test"}
    await Authenticator("secret").caller("POST", "/v1/agents", page | {b"authorization": b"Bearer secret"})
    # Probes come by whatever name.
    await Authenticator("").caller("GET", "/v1/health", page)
    for shown in ({}, {b"authorization": b"Bearer made-up"}):
        with pytest.raises(PermissionDenied):
            await Authenticator("").caller("POST", "/v1/agents", page | shown)
