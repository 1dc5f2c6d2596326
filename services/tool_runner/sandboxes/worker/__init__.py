"""The program inside every sandbox: serves one call, or the calls of one session. Python 3.11 or newer, nothing else.

Started as `python3 -I /opt/loci/worker`, with `--language node` for JavaScript and TypeScript. It is two processes. The
*keeper* (process 1 of the sandbox) speaks frames with the runner on stdin and stdout (`../protocol/wire.py` has them),
captures, limits, relays and at last answers; the *tool* process runs the user's source and never holds the keeper's
descriptors. Nothing that is printed, or written to any descriptor of the tool, can pass for an answer: none of those
leads to the runner, the keeper is not dumpable, so that none can be taken from it by /proc, and what a tool's process
leaves as its outcome is rebuilt from its expected parts.

    keeper    one call after another: the loop            call      one call: its process, pipes, limits, outcome
    frames    what goes over stdin and stdout             starting  the three kinds of processes, behind their pipes
    relay     the proxy's door: connections as frames     tool      a process becomes the tool's, is limited, ends
    output    what is printed: pieces, limits             running   what such a process does, in Python
    files     /inputs, what is made in /work, clearing    loading   the source becomes a module
    outcome   how it ended: encoded there, checked here   annotated arguments as annotations say they are
                                                          objects   arguments whose class is nowhere
                                                          results   what was returned, as JSON
                                                          state     `agent_state` and `client`

Files given to a call lie in /inputs, mode 0444 in folders of mode 0555. The tool has the same user, so modes alone
would not hold: where the kernel has Landlock (5.13; all of it here from 6.2 on), the tool's processes can change
nothing below /inputs. Where it has not, what a tool changes there is its own copy: the original is never reached.
"""
