"""Damage: what is refused, what is reported, what can be salvaged.  Real flips in real files."""
