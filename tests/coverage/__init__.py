"""The public routes and the tests that prove them: docs/api-coverage.md."""
