"""What SQS requires of names, attributes and bodies, and how it is stored."""
