"""Identities: whom agents serve and blocks are about."""
