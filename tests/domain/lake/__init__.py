"""Tests of the lake's layout."""
