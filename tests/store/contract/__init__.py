"""The contract of every store.  Each test runs once per backend; a new one is one more parameter.

The lifecycle is the oracle: the stored row must be what the pure function says.
"""
