"""Identities: whom agents serve."""
