"""Client-side access tokens, API keys, organizations and users."""
