"""One folder per dialect: `client` makes the calls, `translate` is pure. Compatible vendors are rows in
registry.py.
"""
