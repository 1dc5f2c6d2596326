"""`loci/demo` and `loci/hash`: a chat model and embeddings that need no key, no network and no luck.

The model is a list of rules (plan.py) and says so in every answer. It is deterministic: the same messages and
tools give the same reply. Its tool calls are real ones, so that an agent can be tried, taught and tested with
it.
"""
