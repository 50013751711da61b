"""PySpark jobs that compute tables from the lake.  Uses the domain; only the CLI imports it."""
