"""Commands and flags under the names that users of SQS and RabbitMQ expect.

The only module that spells these names, so that the rest of the command line uses our words.
"""

ALIASES = {"claim": "receive", "complete": "ack"}
