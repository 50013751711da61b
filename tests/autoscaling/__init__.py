"""The autoscaler from end to end: real queues, real worker processes, a real RabbitMQ."""
