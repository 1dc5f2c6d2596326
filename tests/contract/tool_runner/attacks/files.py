"""Produced files that are not what they seem."""

from tests.contract.tool_runner.attacks.attack import KILLED, Attack

FILES = (
    Attack(
        "a link to a file of the host",
        """
os.symlink('/etc/passwd', '/work/passwd')
os.symlink('/proc/1/environ', '/work/environ')
return 'none'
""",
    ),
    Attack(
        "a link to a folder",
        """
os.symlink('/', '/work/all')
return 'none'
""",
    ),
    Attack(
        "a pipe and a socket",
        """
os.mkfifo('/work/pipe')
socket.socket(socket.AF_UNIX).bind('/work/socket')
return 'none'
""",
    ),
    Attack(
        "names that climb",
        r"""
for name in ('..\\up', 'new\nline', 'tab\t', '-rf', ' '):
    open('/work/' + name, 'w').close()
os.close(os.open(b'/work/\xff\xfe', os.O_CREAT))
return 'none'
""",
    ),
    Attack(
        "very many files",
        """
for name in range(20_000): os.close(os.open(f'/work/{name}', os.O_CREAT))
return 'none'
""",
    ),
    Attack(
        "folders without end",
        """
for _ in range(2000):
    os.mkdir('d'); os.chdir('d')
open('x', 'w').close()
return 'none'
""",
        ends=KILLED,
    ),
    Attack(
        "a file that changes under the reader",
        """
open('/work/x', 'w').write('small')
if os.fork() == 0:
    while True:
        try:
            os.rename('/work/x', '/work/y'); os.symlink('/etc/passwd', '/work/x')
            os.unlink('/work/x'); os.rename('/work/y', '/work/x')
        except OSError: pass
return 'none'
""",
    ),
    Attack(
        "no right to read it",
        """
open('/work/x', 'w').write('x')
os.chmod('/work/x', 0)
os.mkdir('/work/d')
open('/work/d/y', 'w').close()
os.chmod('/work/d', 0)
return 'none'
""",
    ),
)
