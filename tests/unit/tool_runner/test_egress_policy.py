"""Whom a tool may reach: what `network` may say, and what it then means."""

import json
from typing import Any

import pytest

from services.common.core.refusals import Refused
from services.common.own_places import places_in
from services.tool_runner.core.network_policy import canonical, parse, parse_hosts, refusal
from services.tool_runner.egress.protocol.placeholders import PREFIX, split

SECRET = {"hosts": ["api.example.com"], "header": "Authorization", "format": "Bearer {}"}


def network(**members: Any) -> str:
    return json.dumps(members)


@pytest.mark.parametrize(
    ("entry", "host", "port", "allowed"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "api.example.com", 80, True),
        ("api.example.com", "api.example.com", 8443, False),
        ("API.Example.com.", "api.example.com", 443, True),
        ("api.example.com", "example.com", 443, False),
        ("api.example.com", "x.api.example.com", 443, False),
        ("api.example.com:8443", "api.example.com", 8443, True),
        ("api.example.com:8443", "api.example.com", 443, False),
        ("*.example.com", "a.example.com", 443, True),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "badexample.com", 443, False),
        ("*.example.com:9000", "a.example.com", 9000, True),
        ("*", "anything.org", 443, True),
        ("*", "anything.org", 22, False),
        ("*:22", "anything.org", 22, True),
        ("93.184.216.34", "93.184.216.34", 80, True),
        ("2001:db8::1", "2001:db8::1", 443, True),
        ("[2001:0db8:0::1]:8443", "2001:db8::1", 8443, True),
    ],
)
def test_hosts(entry: str, host: str, port: int, allowed: bool) -> None:
    assert (parse(network(allow=[entry])).meaning(host, port) is not None) is allowed


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("{", "network is not JSON"),
        ("[" * 30_000, "network is not JSON"),
        (" " * 40_000, "network is longer"),
        ("[]", "network must be an object"),
        (network(deny=[]), "network.deny is not known"),
        (network(allow="x.org"), "network.allow must be a list"),
        (network(allow=["x.org"] * 101), "network.allow must be a list"),
        (network(allow=["x.org", 1]), "network.allow[1] must be text"),
        (network(allow=["https://x.org"]), "network.allow[0] 'https://x.org' is not a host"),
        (network(allow=["x.org/path"]), "is not a host"),
        (network(allow=["*x.org"]), "is not a host"),
        (network(allow=["a.*.org"]), "is not a host"),
        (network(allow=[""]), "is not a host"),
        (network(allow=["127.1"]), "is not a host"),
        (network(allow=["2130706433"]), "is not a host"),
        (network(allow=["0x7f.0.0.1"]), "is not a host"),
        (network(allow=["bücher.de"]), "is not a host"),
        (network(allow=["x.org:0"]), "0 is not a port"),
        (network(allow=["x.org:70000"]), "70000 is not a port"),
        (network(allow=["Loci"]), "stands for Loci itself"),
        (network(secrets=[]), "network.secrets must be an object"),
        (network(secrets={"A B": SECRET}), "network.secrets.A B is not the name"),
        (network(secrets={"KEY": {}}), "network.secrets.KEY.hosts must name"),
        (network(secrets={"KEY": {"hosts": ["*"]}}), "network.secrets.KEY.hosts must name"),
        (network(secrets={"KEY": {**SECRET, "value": "x"}}), "network.secrets.KEY.value is not known"),
        (network(secrets={"KEY": {**SECRET, "header": "Host"}}), "network.secrets.KEY.header is not"),
        (network(secrets={"KEY": {**SECRET, "header": "Transfer-Encoding"}}), "network.secrets.KEY.header is not"),
        (network(secrets={"KEY": {**SECRET, "header": "X:\r\nY"}}), "network.secrets.KEY.header is not"),
        (network(secrets={"KEY": {**SECRET, "format": "Bearer"}}), "network.secrets.KEY.format must"),
        (network(secrets={"KEY": {**SECRET, "format": "{}{}"}}), "network.secrets.KEY.format must"),
        (network(secrets={"KEY": {**SECRET, "format": "{}\r\n"}}), "network.secrets.KEY.format must"),
        (network(secrets={"KEY": {"hosts": ["x.org"], "format": "{}"}}), "network.secrets.KEY.format needs a header"),
    ],
)
def test_what_is_refused_is_named(text: str, where: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(text)
    assert refused.value.reason == "NETWORK_INVALID"
    assert where in refused.value.message


def test_the_hosts_of_a_secret_are_allowed() -> None:
    policy = parse(network(secrets={"KEY": SECRET}))
    assert policy.meaning("api.example.com", 443) is not None
    assert policy.meaning("other.example.com", 443) is None
    assert policy.secrets["KEY"].header == "authorization"


def test_the_operator_vouches_for_what_he_names() -> None:
    policy = parse("").with_allowed(parse_hosts("git.intranet:8080, *.example.org ,"))
    named, pattern = policy.meaning("git.intranet", 8080), policy.meaning("a.example.org", 443)
    assert named is not None
    assert pattern is not None
    assert (named.vouched, pattern.vouched) == (True, False)
    # Of two entries the operator's counts: a tool that names the host, too, takes nothing away.
    both = parse(network(allow=["git.intranet:8080"])).with_allowed(parse_hosts("git.intranet:8080"))
    assert both.meaning("git.intranet", 8080) == named
    with pytest.raises(ValueError, match="is not a host"):
        parse_hosts("https://x.org")


@pytest.mark.parametrize(
    ("host", "port", "entry"),
    [("x.org", 443, '"x.org"'), ("x.org", 8443, '"x.org:8443"'), ("2001:db8::1", 8443, '"[2001:db8::1]:8443"')],
)
def test_a_refusal_says_what_would_allow_it(host: str, port: int, entry: str) -> None:
    sentence = refusal(host, port)
    allowed = parse(sentence[sentence.index("{") :])
    assert entry in sentence
    assert allowed.meaning(host, port) is not None


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Example.COM.", "example.com"),
        ("[::FFFF:1.2.3.4]", "::ffff:102:304"),
        ("1.2.3.4", "1.2.3.4"),
        ("1.2.3", None),
        ("0177.0.0.1", None),
        ("1", None),
        ("0x1", None),
        ("a..b", None),
        ("-a.org", None),
        ("exa%6dple.com", None),
        ("a b", None),
        ("", None),
    ],
)
def test_one_form_of_each_host(written: str, read: str | None) -> None:
    found = canonical(written)
    assert found == read or (read is not None and found is not None and canonical(found) == canonical(read))


def test_secrets_stay_outside() -> None:
    policy = parse(network(secrets={"KEY": SECRET, "UNSET": SECRET, "EMPTY": SECRET}))
    shown, held = split({"KEY": "sk-1", "OTHER": "plain", "EMPTY": ""}, policy)
    (secret,) = held
    assert (shown["OTHER"], shown["EMPTY"], sorted(shown)) == ("plain", "", ["EMPTY", "KEY", "OTHER"])
    assert shown["KEY"] == secret.placeholder != "sk-1"
    assert secret.placeholder.startswith(PREFIX)
    assert "sk-1" not in repr(secret)
    assert split({"KEY": "sk-1"}, policy)[0] != split({"KEY": "sk-1"}, policy)[0]


@pytest.mark.parametrize(
    ("address", "places"),
    [
        ("http://gateway:8283/base", [("gateway", 8283)]),
        ("https://loci.example.com", [("loci.example.com", 443)]),
        ("http://[::1]:8283", [("::1", 8283)]),
        ("postgresql://role:p%40ss@db:5433/loci", [("db", 5433)]),
        ("postgresql://role:pass@one,two:6432/loci?x=1", [("one", 5432), ("two", 6432)]),
        ("dns:///agent:50051", [("agent", 50051)]),
        ("0.0.0.0:50051", [("0.0.0.0", 50051)]),
        ("tcp://127.0.0.1:2375", [("127.0.0.1", 2375)]),
        ("unix:///run/loci/agent.sock", []),
        ("", []),
    ],
)
def test_where_parts_of_loci_are(address: str, places: list[tuple[str, int]]) -> None:
    assert places_in(address) == places
