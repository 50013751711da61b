"""Measures Penstock beside its peers: `python -m bench`, or `make bench`. See docs/benchmarks.md."""
