"""The Amazon SQS API in both of its protocols; AWS SDKs only need another endpoint URL."""
