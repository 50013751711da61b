"""The autoscaler: reads the load, and has workers started and stopped."""
