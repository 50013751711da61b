"""SQS's rules for names, attributes and bodies, and how these are stored."""
