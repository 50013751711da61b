"""Tests of circuits."""
