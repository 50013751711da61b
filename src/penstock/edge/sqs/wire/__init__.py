"""The two SQS protocols: requests, signatures, answers."""
