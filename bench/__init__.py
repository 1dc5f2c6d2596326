"""The benchmarks behind the figures of README and docs/performance.md: `make bench`."""
