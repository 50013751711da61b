"""API keys, their permissions, and console logins."""
