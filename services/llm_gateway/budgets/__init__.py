"""What tenants may spend."""
