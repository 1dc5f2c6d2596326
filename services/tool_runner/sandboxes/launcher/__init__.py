"""The only process that holds the container engine's socket, which is root on the engine's host.

It is started by exec, has no listener, no database and no secret, and speaks JSON frames on stdin and stdout
with the tool runner that started it. What it makes is the one container that `spec.py` describes; a request
chooses neither image nor mounts nor privileges, only sizes below a ceiling. It ends when its stdin closes,
and every container it made with it.
"""
