"""Work in the background: claimed, leased, done again after a crash."""
