"""Input that means harm: refused, without a trace, and the server goes on."""
