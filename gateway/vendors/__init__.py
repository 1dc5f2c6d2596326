"""Vendors' own APIs below /v1/anthropic and /v1/zai: requests are passed on as they are, with an agent's memory.

keys.py  which credential is Loci's and which the vendor's; errors.py  failures in Anthropic's form; memory.py  what an
agent adds to a request, and what it keeps of the exchange; relay.py  the vendor's answer as a response
"""
