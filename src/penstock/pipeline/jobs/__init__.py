"""The jobs, one module each, which holds its tables, its pure transforms and a `JOB`."""
