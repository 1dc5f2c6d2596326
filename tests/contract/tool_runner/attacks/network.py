"""The network, and sockets of the host."""

from tests.contract.tool_runner.attacks.attack import Attack

_POLICY = {"kubernetes": "the NetworkPolicy of k8s/sandbox-hosts holds it, and no cluster is here to keep it"}

NETWORK = (
    Attack("the host's loopback", "return connects(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', given['port']))"),
    Attack(
        "the host by the bridge",
        """
for last in ('172.17.0.1', '172.18.0.1', '10.0.0.1', '192.168.0.1'):
    try: return connects(socket.AF_INET, socket.SOCK_STREAM, (last, given['port']))
    except OSError: pass
return 'none'
""",
        unclaimed=_POLICY,
    ),
    Attack(
        "the metadata address",
        "return connects(socket.AF_INET, socket.SOCK_STREAM, ('169.254.169.254', 80))",
        unclaimed=_POLICY,
    ),
    Attack(
        "the open internet", "return connects(socket.AF_INET, socket.SOCK_STREAM, ('1.1.1.1', 443))", unclaimed=_POLICY
    ),
    Attack("IPv6", "return connects(socket.AF_INET6, socket.SOCK_STREAM, ('2606:4700:4700::1111', 443, 0, 0))"),
    Attack("names", "return 'OWNED ' + repr(socket.getaddrinfo('example.com', 443))"),
    Attack(
        "datagrams",
        """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mine:
    mine.sendto(b'x', ('8.8.8.8', 53))
return 'OWNED'
""",
        unclaimed=_POLICY,
    ),
    Attack(
        "raw sockets",
        """
socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
return 'OWNED'
""",
    ),
    Attack(
        "packets",
        """
socket.socket(17, socket.SOCK_RAW, 3)
return 'OWNED'
""",
    ),
    Attack(
        "netlink",
        """
socket.socket(16, socket.SOCK_RAW, 0)
return 'OWNED'
""",
    ),
    Attack(
        "virtual machines' sockets",
        """
socket.socket(40, socket.SOCK_STREAM, 0)
return 'OWNED'
""",
    ),
    Attack(
        "the kernel's crypto sockets",
        """
socket.socket(38, socket.SOCK_SEQPACKET, 0)
return 'OWNED'
""",
    ),
    Attack(
        "bluetooth",
        """
socket.socket(31, socket.SOCK_RAW, 0)
return 'OWNED'
""",
    ),
    Attack(
        "the engine's socket",
        """
for path in ('/var/run/docker.sock', '/run/docker.sock', '/run/containerd/containerd.sock'):
    try: return connects(socket.AF_UNIX, socket.SOCK_STREAM, path)
    except OSError: pass
return 'none'
""",
    ),
    Attack(
        "the services' sockets",
        """
for path in given['sockets']:
    try: return connects(socket.AF_UNIX, socket.SOCK_STREAM, path)
    except OSError: pass
return 'none'
""",
    ),
    Attack(
        "the host's abstract sockets", "return connects(socket.AF_UNIX, socket.SOCK_STREAM, '\\0' + given['abstract'])"
    ),
    Attack(
        "interfaces",
        """
found = [name for _, name in socket.if_nameindex() if name != 'lo']
return 'OWNED ' + repr(found) if found else 'none'
""",
    ),
)
