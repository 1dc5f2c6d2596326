"""How REST shows what the services say."""
