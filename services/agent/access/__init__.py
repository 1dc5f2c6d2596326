"""Who may call, and as whom: tenants, users, keys and restricted tokens."""
