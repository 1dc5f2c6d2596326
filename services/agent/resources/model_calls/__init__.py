"""Model calls beside turns."""
