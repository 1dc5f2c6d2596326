"""Jobs: runs and files, by the reference's older word."""
