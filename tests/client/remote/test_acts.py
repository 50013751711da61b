"""Acts of a worker at a server: requests stay small, also with large results."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.leases import BatchAct
from penstock.api.messages import Acted
from penstock.client.remote.source import MAX_ACTS, RemoteActs
from penstock.domain.datetimes import moment_of
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.worker.claimed_job import JobAct

pytestmark = pytest.mark.no_store("flow")

LARGE = 600_000  # characters; a request takes a mebibyte


class FakeRemote:
    def __init__(self) -> None:
        self.requests: list[list[str]] = []

    def act_batch(self, acts: list[BatchAct]) -> list[Any]:
        self.requests.append([act.receipt for act in acts])
        return [Acted(act.receipt, State.DONE, moment_of(0)) for act in acts]


def acts(sizes: list[int]) -> list[JobAct]:
    return [
        JobAct(
            receipt=str(n),
            verb=Verb.COMPLETE,
            queue="mail",
            result='"' + "x" * size if size else None,
        )
        for n, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "requests"),
    [
        ([0] * 3, [["0", "1", "2"]]),
        ([LARGE, LARGE, 0, LARGE], [["0"], ["1", "2"], ["3"]]),
        ([3 * LARGE, 0], [["0"], ["1"]]),
    ],
)
def test_large_results_are_spread_over_requests(
    sizes: list[int], requests: list[list[str]]
) -> None:
    remote = FakeRemote()
    sent = RemoteActs(remote, acts(sizes))  # type: ignore[arg-type]

    sent.send_all_but()

    assert remote.requests == requests
    assert sent.answers() == [None] * len(sizes)


def test_a_claim_takes_along_as_many_results_as_fit() -> None:
    sent = RemoteActs(FakeRemote(), acts([LARGE, LARGE, 0]))  # type: ignore[arg-type]
    many = RemoteActs(FakeRemote(), acts([0] * (MAX_ACTS + 1)))  # type: ignore[arg-type]

    assert sent.completions({"mail"}) == {"mail": [0]}
    assert list(sent.results([0])) == ["0"]
    assert len(many.completions({"mail"})["mail"]) == MAX_ACTS
