"""Tests of a store's health and time."""
