"""What vendors publish of their models and their endpoints do not say: a table for each vendor."""
