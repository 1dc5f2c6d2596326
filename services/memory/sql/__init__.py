"""SQL that stores share."""
