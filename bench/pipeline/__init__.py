"""`make bench-pipeline`: lifecycle and rollups on Spark, and the same in DuckDB and in Polars.

All three read the same demo lake, and write the same tables to the same disk, in turn, in
one run: figures of different runs do not compare, ratios within one do.
"""
