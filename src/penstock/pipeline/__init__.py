"""PySpark jobs that compute tables from the lake.  Imports the domain; only the CLI imports it."""
