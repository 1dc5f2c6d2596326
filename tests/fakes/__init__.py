"""Wire-faithful fake model providers: HTTP servers on loopback that speak a vendor's protocol.

`openai_server.OpenAIServer` and `anthropic_server.AnthropicServer` are scripted with `script.Reply`, record
what they receive, and run in the test's loop, on a thread of their own, or as `python -m
tests.fakes.openai_server`.
"""
