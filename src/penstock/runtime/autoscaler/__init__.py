"""The autoscaler: reads how much work there is, and has workers started and stopped."""
