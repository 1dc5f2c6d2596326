"""Sandboxes of this machine: processes in namespaces of their own, made by bubblewrap."""
