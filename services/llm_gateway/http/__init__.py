"""HTTP to providers: the client, the transport, and the one exchange of a call."""
