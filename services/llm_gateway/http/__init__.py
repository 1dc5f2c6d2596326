"""How a provider is reached: the HTTP client, the transport, and the one exchange of a call."""
