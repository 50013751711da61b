"""`penstock pipeline`: the only part of the program that knows Spark, and only when it runs."""
