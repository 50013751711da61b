"""What it adds up to: PySpark jobs over the lake.  Sees the domain, and only the CLI sees it."""
