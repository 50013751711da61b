"""Use-cases about circuits and the settings of their breaker."""
