"""SNS through the fronts of a node, which forward it to the writer and sign what is received."""

from __future__ import annotations

import json

from tests.edge.api import Api
from tests.edge.sns.sns import Sns, queue_arn
from tests.edge.sns.validator import is_valid
from tests.edge.sqs.aws import Aws


def test_an_event_published_through_one_front_is_received_through_another(
    clients: list[Api],
) -> None:
    aws = [Aws(str(client.http.base_url)) for client in clients]
    publisher = Sns(str(clients[0].http.base_url), aws[0])
    topic, queue = publisher.topic(), aws[0].make()
    publisher.client.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue_arn(queue))

    publisher.publish(topic, "through fronts")

    body = json.loads(aws[-1].receive_one(queue)["Body"])
    assert body["Message"] == "through fronts"
    assert is_valid(body)
    for one in aws:
        one.close()
