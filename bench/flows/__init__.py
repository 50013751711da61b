"""Chains and groups: our flows beside other frameworks that have them, on the same machine."""
