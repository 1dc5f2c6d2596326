"""The objects that routes answer with, by the service that keeps them."""
