"""Tests of the autoscaler's rules."""
