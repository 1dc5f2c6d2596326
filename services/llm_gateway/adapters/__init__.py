"""What this service reaches outside, beside the providers."""
