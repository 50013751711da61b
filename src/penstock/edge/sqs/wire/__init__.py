"""The two SQS protocols: requests, signatures, responses."""
