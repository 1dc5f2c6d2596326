"""Usage of models, and budgets."""
