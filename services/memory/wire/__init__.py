"""What servicers share."""
