"""The jobs, one module each, with its tables, its pure transforms and a `JOB`."""
