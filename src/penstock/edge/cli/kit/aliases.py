"""Commands and flags under the names that users of SQS and RabbitMQ expect.

Only this module contains those names; the rest of the command line uses our own terms.
"""

ALIASES = {"claim": "receive", "complete": "ack"}
