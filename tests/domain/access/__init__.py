"""Tests of API keys and logins."""
