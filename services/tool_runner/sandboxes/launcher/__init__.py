"""The only process that holds the container engine's socket, which is root on the engine's host.

It is started by exec, has no listener, no database and no secret, and speaks frames on one socket, its stdin and
stdout, with the tool runner that started it. What it makes is the one container that `spec.py` describes; a request
chooses neither image nor mounts nor privileges, only sizes below a ceiling, a language, and a layer of packages.
Between a container and the tool runner it is a relay: it carries their bytes, understands none of them, and takes in
no more than the other side asked for. It ends when its stdin closes, and every container it made with it.

    wire      the frames                          channel   one container, relayed from start to end
    work      questions to the engine, in threads attached  its stream without blocking; stdout and stderr told apart
    engine    the Docker SDK                      spec      the container; pure
    owner     whose a container is
"""
