"""The part that the `migrations/env.py` files of the services share."""
