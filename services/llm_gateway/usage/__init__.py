"""The usage of calls: rows, their sums, and reports."""
