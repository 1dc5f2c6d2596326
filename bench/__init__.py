"""The programs behind the figures of docs/performance.md: `make bench`."""
