"""Tests of schedules."""
