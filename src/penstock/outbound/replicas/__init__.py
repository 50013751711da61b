"""Who starts and stops the workers of a fleet: this machine, a command, Kubernetes, or nobody."""
