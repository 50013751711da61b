"""A make-believe past of a broker, written as its archiver would have: for newcomers and benches.

The same question always gives the same past: nothing here is drawn, all chance is a hash.
"""
