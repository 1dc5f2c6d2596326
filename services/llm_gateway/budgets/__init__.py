"""The budgets of tenants, and the ledger of what is left of them."""
