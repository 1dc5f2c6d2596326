"""The program around the code of `run_code_with_tools`. It runs in the sandbox; the code comes as an argument.

It asks Loci for the agent's tools through the sandbox's proxy, which knows for whom; a tool is called by the same way,
so that it is run by whoever runs it otherwise, with its own rules and receipt.
"""

PROGRAM = '''
import ast
import json
import os
import urllib.error
import urllib.parse
import urllib.request

_AGENT = os.environ["LETTA_BASE_URL"] + "/v1/agents/" + os.environ["LETTA_AGENT_ID"] + "/tools"


class ToolFailed(Exception):
    """A tool said that it failed."""


def _ask(method, url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        said = error.read().decode("utf-8", "replace")[:1000]
        raise ToolFailed(said or str(error)) from None


def _function(name):
    def call(**arguments):
        answer = _ask("POST", _AGENT + "/" + urllib.parse.quote(name, safe="") + "/run", {"args": arguments})
        if answer["status"] != "success":
            raise ToolFailed(name + ": " + str(answer.get("func_return") or answer.get("stderr")))
        return answer["func_return"]

    call.__name__ = name
    return call


def run_code_with_tools(code):
    names = [tool["name"] for tool in _ask("GET", _AGENT + "?limit=1000")]
    namespace = {name: _function(name) for name in names if name.isidentifier() and name != "run_code_with_tools"}
    namespace |= {"__name__": "__main__", "ToolFailed": ToolFailed}
    program = ast.parse(code)
    last = program.body.pop() if program.body and isinstance(program.body[-1], ast.Expr) else None
    exec(compile(program, "<tool>", "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), "<tool>", "eval"), namespace)
'''
