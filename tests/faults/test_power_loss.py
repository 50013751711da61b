"""The power fails, and only what was synced is left, torn or whole (SQLite)."""

from __future__ import annotations

import random
import shutil
import tempfile
from functools import partial
from pathlib import Path

import apsw
import pytest

from tests.faults.checker import Rules
from tests.faults.conftest import MakeServer
from tests.faults.consumers import act_on, claim
from tests.faults.directory import Names
from tests.faults.disk import Loss
from tests.faults.figures import figure
from tests.faults.history import History, Outcome
from tests.faults.load import Load
from tests.faults.scenario import assert_kept, judge, on_faulty_disk
from tests.faults.server import EXIT_POWER_CUT, Server
from tests.faults.wire import Wire

CUTS = figure(5, 40)
ACKED_PER_CUT = figure(200, 380)
EVERY_KIND = [*Loss, Loss.EVERYTHING]  # losing everything finds most errors


def cut_again_and_again(server: Server, cuts: int, names: Names) -> None:
    data = Path(str(server.store))

    def cut(load: Load) -> None:
        for number in range(cuts):
            load.wait_for_sends(ACKED_PER_CUT, within_s=60)
            loss = EVERY_KIND[number % len(EVERY_KIND)]
            load.fault(
                f"power cut, {loss} lost",
                partial(server.cut_power, loss=loss, names=names, seed=number),
                forgets_leases=True,
            )
            assert_is_sound(data)
            server.start()
        load.wait_for_sends(100, within_s=60)

    assert_kept(judge(server, cut, Rules(min_acked=cuts * ACKED_PER_CUT)), server)


def assert_is_sound(data: Path) -> None:
    """SQLite itself must find nothing wrong with what the power cut left.

    Asked of a copy: a plain connection to the original would write pages without their checksums.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(data, Path(folder) / "copy"))
        databases = list(copy.glob("*.db"))
        assert databases, f"no database among {[path.name for path in copy.iterdir()]}"
        for path in databases:
            db = apsw.Connection(str(path))
            found = db.execute("PRAGMA integrity_check").get
            db.close()
            assert found == "ok", f"{path.name} after the cut: {found}"


def test_a_power_cut_loses_nothing_that_was_acknowledged(
    make_server: MakeServer, tmp_path: Path
) -> None:
    server = make_server(**on_faulty_disk(tmp_path / "data"))
    server.start()

    cut_again_and_again(server, CUTS, Names.EXT4)


def test_a_power_cut_that_takes_unsynced_file_names_loses_nothing_either(
    make_server: MakeServer, tmp_path: Path
) -> None:
    server = make_server(**on_faulty_disk(tmp_path / "data"))
    server.start()

    cut_again_and_again(server, figure(1, 15), Names.POSIX)


@pytest.mark.parametrize("names", list(Names))
def test_a_power_cut_during_the_very_first_start_leaves_a_store_that_starts(
    make_server: MakeServer, tmp_path: Path, names: Names
) -> None:
    whole = make_server(tmp_path / "whole", **on_faulty_disk(tmp_path / "whole"))
    whole.start()
    calls = whole.steer(get=["calls"])["calls"]
    whole.kill()
    dice = random.Random(9)
    for number in range(figure(2, 15)):
        data = tmp_path / f"first-{number}"
        trouble = {"cut_at": dice.randint(1, calls)}
        loss = dice.choice(list(Loss))
        options = on_faulty_disk(data, loss=loss, names=names, seed=number) | {"trouble": trouble}
        first = make_server(data, **options)
        first.start(wait=False)
        assert first.wait_for_end(20) == EXIT_POWER_CUT, first.stderr_tail()

        second = make_server(data)
        second.start()

        assert_takes_a_message(second)
        second.kill()


def test_a_receipt_from_before_a_power_cut_is_not_valid_for_the_lease_after_it(
    make_server: MakeServer, tmp_path: Path
) -> None:
    """The cut may lose the first lease; the next one, with the same number, must be another."""
    server = make_server(**on_faulty_disk(tmp_path / "data"))
    server.start()
    history, wire = History(), Wire(server.port)
    assert wire.call("PUT", "/v1/queues/q", {"lease_ms": 60_000}).outcome is Outcome.OK
    assert wire.call("POST", "/v1/queues/q/messages", {"body": 1}).outcome is Outcome.OK
    _, before = claim(wire, history, "q", limit=1, lease_ms=60_000)
    server.cut_power(loss=Loss.EVERYTHING)
    server.start()
    wire.close()
    _, after = claim(wire, history, "q", limit=1, lease_ms=60_000)

    late = act_on(wire, history, before[0], "complete")

    if after:  # the lease was lost, and the message claimed again
        assert late.code == "lease_lost", f"the old receipt ended the new lease: {late}"
    else:
        assert late.outcome is Outcome.OK
    wire.close()


def test_the_harness_notices_a_disk_that_only_pretends_to_sync(
    make_server: MakeServer, tmp_path: Path
) -> None:
    """A test of the harness: with a lying disk acknowledged messages must get lost."""
    options = on_faulty_disk(tmp_path / "data") | {"trouble": {"sync_s": 0.001}}
    server = make_server(**options)
    server.start()

    def cut(load: Load) -> None:
        load.wait_for_sends(50, within_s=60)
        server.steer(set={"is_lying": True})
        load.wait_for_sends(300, within_s=60)
        server.cut_power(loss=Loss.EVERYTHING)
        server.start()

    verdict = judge(server, cut, Rules(min_acked=300))

    assert {"lost", "counters do not balance"} & set(verdict.broken), f"nothing noticed:\n{verdict}"


def assert_takes_a_message(server: Server) -> None:
    history, wire = History(), Wire(server.port)
    assert wire.call("PUT", "/v1/queues/q", {}).outcome is Outcome.OK
    assert wire.call("POST", "/v1/queues/q/messages", {"body": 1}).outcome is Outcome.OK
    _, claims = claim(wire, history, "q", limit=1, lease_ms=1000)
    assert [op.body for op in claims] == [1]
    wire.close()
