"""Generates a demo lake, as the archiver of a broker would have written it, for trials and benches.

The same arguments always give the same lake: random numbers are hashes.
"""
