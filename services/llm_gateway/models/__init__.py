"""The models of a tenant's providers and of the operator's."""
