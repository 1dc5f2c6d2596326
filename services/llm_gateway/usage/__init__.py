"""What calls cost: single calls, their sums, and reports."""
