"""Tools: the catalogue of a tenant, its search, and imports from other libraries."""
