"""Limits of gRPC that both ends of a connection must agree on."""

# What a request or an answer holds at most; a picture counts as the bytes that it is.
MAX_CONTENT_BYTES = 32 * 1024 * 1024
# The same on the wire, where a picture is base64 and longer by a third.
MAX_MESSAGE_BYTES = 44 * 1024 * 1024
# gRPC's own limit of 8 KiB is short for an error with its details.
MAX_METADATA_BYTES = 64 * 1024
KEEPALIVE_MS = 20_000
KEEPALIVE_TIMEOUT_MS = 10_000
# How often a server lets its clients ping; must stay below KEEPALIVE_MS.
LEAST_PING_INTERVAL_MS = 10_000
