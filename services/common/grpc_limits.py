"""Limits of gRPC that both ends of a connection must agree on."""

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
# gRPC's own limit of 8 KiB is short for an error with its details.
MAX_METADATA_BYTES = 64 * 1024
KEEPALIVE_MS = 20_000
KEEPALIVE_TIMEOUT_MS = 10_000
# How often a server lets its clients ping; must stay below KEEPALIVE_MS.
LEAST_PING_INTERVAL_MS = 10_000
