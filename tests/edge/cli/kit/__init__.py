"""The shared parts of the commands: flags, output, signals."""
