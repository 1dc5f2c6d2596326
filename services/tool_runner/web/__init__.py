"""The web as tools see it: search by whoever the operator or the tenant has a key for, and pages as text."""
