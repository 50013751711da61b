"""Amazon SQS's API, in both of its protocols: what AWS SDKs need besides another endpoint URL."""
