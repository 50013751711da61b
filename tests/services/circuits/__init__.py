"""Circuits: permits, probes, settings, held queues."""
