"""The edges: protocols and commands that parse input, call a service and render the result."""
