"""WebSockets: talking to agents, and remote devices."""
