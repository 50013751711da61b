"""Standard queues with a MessageGroupId: quiet tenants do not wait behind a noisy one."""

from __future__ import annotations

from tests.edge.api import Api
from tests.edge.conftest import MakeServer
from tests.edge.sqs.aws import Aws, name_of, refused


def send(aws: Aws, queue: str, tenant: str, count: int) -> None:
    for n in range(count):
        aws.send(queue, f"{tenant}{n}", MessageGroupId=tenant)


def test_a_quiet_tenant_does_not_wait_behind_the_backlog_of_a_noisy_one(
    aws: Aws, queue: str
) -> None:
    send(aws, queue, "noisy", 12)
    send(aws, queue, "quiet", 2)

    assert aws.bodies(queue, 4) == ["noisy0", "quiet0", "noisy1", "quiet1"]


def test_the_tenants_of_a_batch_share_too(aws: Aws, queue: str) -> None:
    entries = [{"MessageBody": f"noisy{n}", "MessageGroupId": "noisy"} for n in range(5)]
    aws.send_batch(queue, *entries, {"MessageBody": "quiet0", "MessageGroupId": "quiet"})

    assert "quiet0" in aws.bodies(queue, 2)


def test_messages_of_one_tenant_stay_in_order_and_do_not_block_each_other(
    aws: Aws, queue: str
) -> None:
    send(aws, queue, "a", 3)

    assert [aws.bodies(queue, 1) for _ in range(3)] == [["a0"], ["a1"], ["a2"]]


def test_a_queue_becomes_fair_with_its_first_group(aws: Aws, queue: str, api: Api) -> None:
    aws.send(queue, "alone")
    assert not api.queue(name_of(queue))["settings"]["is_fair"]

    aws.send(queue, "grouped", MessageGroupId="a")

    assert api.queue(name_of(queue))["settings"]["is_fair"]


def test_a_group_that_is_rejected_does_not_make_a_queue_fair(
    aws: Aws, queue: str, api: Api
) -> None:
    with refused("InvalidParameterValue"):
        aws.send(queue, "grouped", MessageGroupId="not possible")

    assert not api.queue(name_of(queue))["settings"]["is_fair"]


def test_fair_queues_can_be_switched_off(make_server: MakeServer) -> None:
    aws = Aws(make_server(sqs={"fair_queues": False}).url)
    queue = aws.make()
    send(aws, queue, "noisy", 4)
    send(aws, queue, "quiet", 1)

    assert aws.bodies(queue)[-1] == "quiet0"
    aws.close()
