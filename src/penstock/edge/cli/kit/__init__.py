"""Shared parts of all commands: flags, output, exit codes."""
