"""Become another program that does not outlive its parent.

`python -SE cli/child.py SIGNAL PARENT UID:GID PROGRAM ARG...` asks the kernel (Linux) to send SIGNAL when
the process PARENT is gone, drops root for UID:GID unless that is `-`, then becomes PROGRAM. It is a program
of its own because a threaded parent must not run Python between fork and exec.
"""

from __future__ import annotations

import ctypes  # now: the account we change to may be unable to read this interpreter's files
import os
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(signal_number: int) -> None:
    """Linux only; elsewhere what a killed supervisor leaves must be ended by hand."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number)


def main(arguments: list[str]) -> None:
    """Exec the program; never returns."""
    signal_number, parent, account, *program = arguments
    if account != "-":
        uid, gid = (int(part) for part in account.split(":"))
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    die_with_parent(int(signal_number))  # after the change of user, which would clear it
    if os.getppid() != int(parent):
        sys.exit(1)
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
