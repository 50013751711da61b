"""The composition roots: the only place that knows which classes are behind the ports."""
