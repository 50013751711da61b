"""Tests of deliveries and routes."""
