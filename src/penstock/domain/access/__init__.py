"""API keys and console logins: who may do what."""
