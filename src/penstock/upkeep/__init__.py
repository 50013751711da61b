"""What an operator does to a store beside the server: back it up, move it, migrate it, examine it.

Like `wiring`, this knows the concrete classes; unlike it, nothing here is needed to serve.
"""
