"""The settings of MCP servers, and of addresses that are not public; see `settings.py`."""

import os

from services.common.core import private_hosts
from services.common.core.addresses import ALLOW
from services.common.core.private_hosts import PrivateHosts
from services.common.settings import Env, SettingsError
from services.tool_runner.core.job import MIB, HostFolder, HostView
from services.tool_runner.core.network_policy import Host, parse_hosts, parse_tcp
from services.tool_runner.mcp.client import Times
from services.tool_runner.mcp_servers.wiring import McpSettings
from services.tool_runner.sandboxes.host_folders import parse_host_folders
from services.tool_runner.sandboxes.remote import REMOTE_KINDS

# Where Loci's data and keys are, if nothing else is said; what of that a program must not see.
_DATA = ("/var/lib/loci", os.path.expanduser("~/.loci"))
# Of a person's own environment, for programs on their own machine; no setting of Loci, and none of its secrets.
_OF_THE_USER = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "XDG_RUNTIME_DIR")
_KEYS = ("LOCI_CONTEXT_PUBLIC_KEYS", "LOCI_CONTEXT_SIGNING_KEY", "LOCI_ENCRYPTION_KEY")


def read(env: Env) -> McpSettings:
    """Raises SettingsError."""
    usual, folders, programs = Times(), _host_folders(env), env.flag("LOCI_MCP_STDIO_PROGRAMS")
    on_host, tcp = _on_host(env), _tcp(env)
    if programs and not _is_bubblewrap(env):
        raise SettingsError(
            "LOCI_MCP_STDIO_PROGRAMS: only bubblewrap shows this machine's programs; others have an image"
        )
    shown = bool(folders or tcp) or programs
    return McpSettings(
        # The second is the reference's. Who shows programs something wants programs.
        stdio=on_host is not None
        or env.flag("LOCI_MCP_STDIO", default=shown or not env.flag("MCP_DISABLE_STDIO", default=True)),
        host=HostView(folders, programs),
        tcp=tcp,
        on_host=on_host,
        home_dir=env.text("LOCI_MCP_HOME_DIR", default=_mcp_homes(env), expected="a folder"),
        home_bytes=MIB * env.integer("LOCI_MCP_HOME_MIB", default=256, least=1, most=1_048_576, example="256"),
        allow_private=private_hosts_of(env),
        times=Times(
            connect=env.seconds("LOCI_MCP_CONNECT_SECONDS", default=usual.connect),
            list=env.seconds("LOCI_MCP_LIST_SECONDS", default=usual.list),
            execute=env.seconds("LOCI_MCP_EXECUTE_SECONDS", default=usual.execute),
            idle=env.seconds("LOCI_MCP_IDLE_SECONDS", default=usual.idle),
        ),
    )


def _on_host(env: Env) -> dict[str, str] | None:
    """Returns the environment of programs that run on the machine itself; None where they run in sandboxes."""
    if env.text("LOCI_MCP_STDIO", default="").lower() != "host":
        return None
    if not env.flag("LOCI_SINGLE_USER"):
        raise SettingsError(
            "LOCI_MCP_STDIO=host lets whoever adds an MCP server run programs as the user of Loci, so it works only "
            "under `make run` on a loopback address, without a password, keys or a public URL; where others can log "
            "in, use LOCI_MCP_STDIO=true, and LOCI_MCP_STDIO_PATHS for folders"
        )
    return {name: value for name in _OF_THE_USER if (value := env.text(name, default=""))}


def _tcp(env: Env) -> tuple[Host, ...]:
    try:
        hosts = parse_tcp(env.text("LOCI_MCP_STDIO_TCP", default=""))
    except ValueError as error:
        raise SettingsError(f"LOCI_MCP_STDIO_TCP: {error}") from None
    if hosts and not _is_bubblewrap(env):
        raise SettingsError("LOCI_MCP_STDIO_TCP: only bubblewrap leads programs to databases; others reach HTTP alone")
    return hosts


def _is_bubblewrap(env: Env) -> bool:
    return env.text("LOCI_SANDBOX", default="auto") in ("auto", "bubblewrap")


def _mcp_homes(env: Env) -> str:
    home = env.text("LOCI_HOME", default="")
    return os.path.join(home, "mcp") if home else ""


def _host_folders(env: Env) -> tuple[HostFolder, ...]:
    text = env.text("LOCI_MCP_STDIO_PATHS", default="", expected="folders with colons", example="/opt/mcp:/usr/local")
    if text and env.text("LOCI_SANDBOX", default="auto") in REMOTE_KINDS:
        raise SettingsError("LOCI_MCP_STDIO_PATHS: only docker and bubblewrap can show folders of this machine")
    keys = (value for name in _KEYS if (value := env.text(name, default="")).startswith("/"))
    try:
        return parse_host_folders(text, [env.text("LOCI_HOME", default=""), *_DATA, *keys])
    except ValueError as error:
        raise SettingsError(f"LOCI_MCP_STDIO_PATHS: {error}") from None


def private_hosts_of(env: Env) -> PrivateHosts:
    """Raises SettingsError."""
    name = private_hosts.NAME
    try:
        hosts = tuple((host.name, host.port) for host in parse_hosts(env.text(name, default="")))
    except ValueError as error:
        raise SettingsError(f"{name}: {error}") from None
    if any(host == "*" for host, _ in hosts):
        raise SettingsError(f"{name} names hosts, as in mcp-server:8000,host.docker.internal; {ALLOW}=1 allows all")
    return PrivateHosts(everywhere=env.flag(ALLOW), hosts=hosts)
