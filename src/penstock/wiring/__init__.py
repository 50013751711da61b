"""The composition roots: the only place that knows which classes implement the ports."""
