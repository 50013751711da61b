"""Messages through both channels of a client: the same calls, the same records."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.api.manual_acts import Changed, Where
from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.server import Remote
from penstock.client.remote.transport import Transport
from penstock.client.resources.messages import MessageClient
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest, MessageNotFound, QueueNotFound, WrongState
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct
from penstock.domain.queue.queue import QueueSettings
from penstock.operations.messages import BulkOperations, MessageOperations
from tests.clocks import NOON, ManualClock
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path / "data")
    with LiveServer(settings, clock=ManualClock(), has_duties=False) as started:
        started.broker.queues.put("mail", QueueSettings()).result()
        yield started


@pytest.fixture
def remote(server: LiveServer) -> Iterator[Remote]:
    with Remote(server.url) as opened:
        yield opened


@pytest.fixture(params=["over HTTP", "in process"])
def messages(request: pytest.FixtureRequest, server: LiveServer) -> MessageClient:
    channel: Channel
    if request.param == "over HTTP":
        channel = Transport(server.url)
    else:
        services = server.broker.messages, server.broker.selection
        handlers = {
            **MessageOperations(*services).handlers(),
            **BulkOperations(*services).handlers(),
        }
        channel = LocalChannel(handlers)
    return MessageClient(channel)


def test_a_message_has_its_decoded_body_and_datetimes(
    messages: MessageClient, remote: Remote
) -> None:
    sent = remote.send("mail", {"to": "ada"}, kind="welcome", tags=("a", "b"), delay_ms=1_000)

    found = messages.get(sent.id)

    assert (found.id, found.queue, found.state) == (sent.id, "mail", State.WAITING)
    assert (found.body, found.kind, found.tags) == ({"to": "ada"}, "welcome", ("a", "b"))
    assert (found.sent_at, found.due_at) == (moment_of(NOON), moment_of(NOON + 1_000))
    assert messages.browse("mail", state=State.WAITING).messages == [found]


def test_a_claimed_message_shows_its_lease_and_its_progress(
    messages: MessageClient, remote: Remote
) -> None:
    sent = remote.send("mail", 1, timeout_ms=9_000)
    [claimed] = remote.claim("mail", lease_ms=5_000, claimed_by="worker-1")
    remote.extend(claimed.receipt, lease_ms=5_000, progress={"done": 1})

    found = messages.get(sent.id)

    assert (found.state, found.leased_by, found.receipt) == (State.LEASED, "worker-1", None)
    assert (found.leased_at, found.leased_until) == (moment_of(NOON), moment_of(NOON + 5_000))
    assert (found.deadline_at, found.progress) == (moment_of(NOON + 9_000), {"done": 1})


def test_browsing_continues_at_the_cursor_and_by_filters(
    messages: MessageClient, remote: Remote
) -> None:
    ids = [remote.send("mail", n, kind=kind).id for n, kind in enumerate("aba")]

    first = messages.browse("mail", limit=2)
    assert [m.id for m in first.messages] == ids[:2]
    second = messages.browse("mail", limit=2, cursor=first.next)
    assert ([m.id for m in second.messages], second.next) == (ids[2:], None)
    assert [m.body for m in messages.browse("mail", kind="a").messages] == [0, 2]
    assert messages.browse("mail", sent_before=moment_of(NOON)).messages == []


def test_an_operator_ends_messages_one_by_one(messages: MessageClient, remote: Remote) -> None:
    one, two, three = [remote.send("mail", n).id for n in range(3)]

    assert messages.complete(one, reason="by telephone").state is State.DONE
    assert messages.cancel(two).state is State.CANCELLED
    assert messages.bury(three, reason="no such address").state is State.DEAD
    assert messages.get(three).reason == "no such address"
    assert messages.redrive(three).state is State.READY
    ended = messages.get(one)
    assert (ended.state, ended.reason, ended.body) == (State.DONE, "by telephone", 0)


def test_a_leased_message_is_cancelled_only_if_that_is_wanted(
    messages: MessageClient, remote: Remote
) -> None:
    sent = remote.send("mail", 1)
    remote.claim("mail")

    with pytest.raises(WrongState):
        messages.cancel(sent.id)
    assert messages.cancel(sent.id, is_running_ok=True).state is State.CANCELLED


def test_a_message_is_rescheduled_to_an_instant_or_by_a_delay(
    messages: MessageClient, remote: Remote
) -> None:
    sent = remote.send("mail", 1)
    later = moment_of(NOON) + timedelta(hours=1)

    assert messages.reschedule(sent.id, later).due_at == later
    assert messages.reschedule(sent.id, delay_ms=1_000).due_at == moment_of(NOON + 1_000)
    with pytest.raises(InvalidRequest, match="due_at or delay_ms"):
        messages.reschedule(sent.id)


def test_many_messages_are_counted_and_changed_at_once(
    messages: MessageClient, remote: Remote
) -> None:
    ids = [remote.send("mail", n, kind=kind).id for n, kind in enumerate("aba")]
    of_kind_a = Where(State.READY, kind="a", sent_from=moment_of(NOON))

    counted = messages.change_many("mail", BulkAct.CANCEL, where=of_kind_a, is_dry_run=True)
    assert counted == Changed(matched=2, changed=0, refused=0, is_cut=False)
    done = messages.change_many("mail", BulkAct.CANCEL, where=of_kind_a)
    assert done == Changed(matched=2, changed=2, refused=0, is_cut=False)
    done = messages.change_many("mail", BulkAct.BURY, ids=ids)
    assert done == Changed(matched=1, changed=1, refused=2, is_cut=False)


def test_a_message_that_was_claimed_meanwhile_counts_as_refused(
    messages: MessageClient, remote: Remote
) -> None:
    ids = [remote.send("mail", n).id for n in range(2)]
    remote.claim("mail")

    done = messages.change_many("mail", BulkAct.COMPLETE, ids=ids)

    assert done == Changed(matched=2, changed=1, refused=1, is_cut=False)


def test_errors_are_those_of_the_broker(messages: MessageClient) -> None:
    with pytest.raises(QueueNotFound):
        messages.browse("nowhere")
    with pytest.raises(QueueNotFound):
        messages.change_many("nowhere", BulkAct.CANCEL, ids=["x"])
    with pytest.raises(MessageNotFound):
        messages.get("00000000-0000-7000-8000-000000000000")
