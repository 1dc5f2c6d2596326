"""Become another program that does not outlive its parent: `python -S cli/child.py SIGNAL UID:GID PROGRAM ARG...`.

Run as a file of its own, by exec: a threaded parent must not run Python between fork and exec. It asks the
kernel to send SIGNAL when the parent is gone (Linux), drops root for UID:GID unless that is `-`, then becomes PROGRAM.
"""

from __future__ import annotations

import ctypes  # now: the account we change to may be unable to read this interpreter's files
import os
import sys


def die_with_parent(signal_number: int) -> None:
    """Linux only; elsewhere the next start ends what a killed supervisor left."""
    if not sys.platform.startswith("linux"):
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal_number)


def main(arguments: list[str]) -> None:
    """Exec `arguments[3:]`; never returns."""
    signal_number, parent, account, program = (
        int(arguments[0]),
        int(arguments[1]),
        arguments[2],
        arguments[3:],
    )
    if account != "-":
        uid, gid = (int(part) for part in account.split(":"))
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    die_with_parent(signal_number)  # after the change of user, which would clear it
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
