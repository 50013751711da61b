"""The Query protocol of SQS, at `/` and at the paths of queues."""

from __future__ import annotations

from typing import Any

from penstock.edge.aws.operation import AwsOperation
from penstock.edge.aws.query_protocol import QueryProtocol
from penstock.edge.server.request import Request
from penstock.edge.sqs.rules.content import MAX_BYTES
from penstock.edge.sqs.wire.dialect import DIALECT
from penstock.edge.sqs.wire.model import QueueInput
from penstock.edge.sqs.wire.operations import ENVELOPE_BYTES, OPERATIONS

_NOT_ON_QUEUES = ("CreateQueue", "ListQueues")


class SqsQueryProtocol(QueryProtocol):
    dialect = DIALECT
    most_bytes = 3 * MAX_BYTES + ENVELOPE_BYTES  # %41

    def find(self, action: str, request: Request) -> AwsOperation | None:
        if _is_on_queue(request) and action in _NOT_ON_QUEUES:
            return None
        return OPERATIONS.get(action)

    def complete(self, operation: AwsOperation, given: dict[str, Any], request: Request) -> None:
        if _is_on_queue(request) and issubclass(operation.input_type, QueueInput):
            given.setdefault("QueueUrl", request.path)


def _is_on_queue(request: Request) -> bool:
    return bool(request.path.strip("/"))
