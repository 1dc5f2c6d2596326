"""Which public routes there are, and what says that they work: docs/api-coverage.md."""
