"""`penstock pipeline`: the only commands that import Spark, and only when they run."""
