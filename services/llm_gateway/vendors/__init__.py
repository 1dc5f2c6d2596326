"""One folder per dialect. `client` makes the calls; everything else is pure. Compatible vendors are rows in
core/provider_types.py.
"""
