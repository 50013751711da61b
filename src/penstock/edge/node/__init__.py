"""A node of several processes: a supervisor, a writer and fronts."""
