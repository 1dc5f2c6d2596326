"""`make bench-memory`: does memory find what was said, forget what was taken back, and tell now from then?

Without any language model: a seed makes a history of sessions with known evidence, and questions about it. The same
seed gives the same figures.
"""
