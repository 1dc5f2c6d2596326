"""The way of a call to a model: budgets, retries, fallbacks, the endpoint's state, the account."""
