"""Sandboxes on Kubernetes: hosts are pods that are leased to one tenant at a time, and deleted before another's turn.

`host.py` is the program in the pods; the rest is the runner's side. Decision: docs/decisions/0034-sandbox-hosts.md
"""
