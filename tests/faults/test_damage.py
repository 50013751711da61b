"""A torn log and flipped bits (SQLite): messages never get lost silently."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.faults.conftest import MakeServer
from tests.faults.consumers import claim, complete_all
from tests.faults.figures import figure
from tests.faults.history import History, Outcome
from tests.faults.server import Server
from tests.faults.wire import Wire

QUEUE = "faults-damage"
COUNT = 150
TORN_BYTES = 65536
SECTOR = 512
SAYS_SO = ("damage", "corrupt", "checksum", "malformed", "unfinished")


def a_body(number: int) -> dict[str, object]:
    return {"number": number, "text": f"{number} " * (20 if number % 10 else 900)}


@pytest.fixture
def filled(make_server: MakeServer, tmp_path: Path) -> Server:
    """A broker that has acknowledged messages one after the other; still running."""
    server = make_server(tmp_path / "filled")
    server.start()
    wire = Wire(server.port)
    assert wire.call("PUT", f"/v1/queues/{QUEUE}", {"lease_ms": 60_000}).outcome is Outcome.OK
    for number in range(COUNT):
        answer = wire.call("POST", f"/v1/queues/{QUEUE}/messages", {"body": a_body(number)})
        assert answer.outcome is Outcome.OK, answer
    wire.close()
    return server


def the_file(data: Path, ending: str) -> Path:
    found = [path for path in data.iterdir() if path.name.endswith(ending)]
    assert len(found) == 1, f"{ending} among {[path.name for path in data.iterdir()]}"
    return found[0]


def take_all(server: Server) -> tuple[list[int], list[str]]:
    """The numbers that are delivered, in order, and the errors on the way."""
    history, wire = History(), Wire(server.port)
    numbers: list[int] = []
    complaints: list[str] = []
    while len(complaints) < 3:
        answer, claims = claim(wire, history, QUEUE, limit=10, lease_ms=60_000)
        if answer.outcome is not Outcome.OK:
            complaints.append(f"{answer.status} {answer.data}")
            continue
        if not claims:
            break
        for op in claims:
            number = op.body["number"]
            assert op.body == a_body(number), f"corrupt: {op.body}"
            numbers.append(number)
        if complete_all(wire, history, claims).outcome is not Outcome.OK:
            complaints.append("completing failed")
    wire.close()
    return numbers, complaints


def test_a_log_torn_at_any_sector_opens_with_a_prefix_of_what_was_sent(
    filled: Server, make_server: MakeServer, tmp_path: Path
) -> None:
    filled.kill()
    data = Path(str(filled.store))
    size = the_file(data, "-wal").stat().st_size
    assert size > TORN_BYTES, f"a log of {size} bytes is too short to tear"
    points = list(range(SECTOR, TORN_BYTES + 1, SECTOR))
    for number, lost in enumerate(random.Random(15).sample(points, figure(4, len(points)))):
        torn = tmp_path / f"torn-{lost}"
        shutil.copytree(data, torn)
        with the_file(torn, "-wal").open("r+b") as log:
            log.truncate(size - lost)
            if number % 2:
                log.truncate(size)  # the length survived, the content did not: zeros
        server = make_server(torn)
        server.start()

        numbers, complaints = take_all(server)

        assert not complaints
        assert numbers == list(range(len(numbers))), "not a prefix of what was sent"
        server.kill()
        shutil.rmtree(torn)


@pytest.mark.parametrize("part", ["database", "log"])
def test_a_flipped_bit_is_noticed_or_harmless_but_never_silently_fewer_messages(
    filled: Server, make_server: MakeServer, tmp_path: Path, part: str
) -> None:
    if part == "database":
        assert filled.terminate(within_s=60)[0] == 0, filled.stderr_tail()
    else:
        filled.kill()
    data, dice = Path(str(filled.store)), random.Random(16)
    ending = ".db" if part == "database" else "-wal"
    outcomes: dict[str, int] = {}
    for number in range(figure(6, 50)):
        flipped = tmp_path / f"flipped-{number}"
        shutil.copytree(data, flipped)
        where = flip_a_bit(the_file(flipped, ending), dice)
        server = make_server(flipped)
        what = outcome_of(server)
        outcomes[what] = outcomes.get(what, 0) + 1
        assert what != "silently fewer", f"bit flipped at {where}: {outcomes}"
        assert what == "refused to start" or part == "database", f"bit flipped at {where}"
        shutil.rmtree(flipped)
    print(outcomes)


def flip_a_bit(path: Path, dice: random.Random) -> int:
    where = dice.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.seek(where)
        byte = file.read(1)[0]
        file.seek(where)
        file.write(bytes([byte ^ 1 << dice.randrange(8)]))
    return where


def outcome_of(server: Server) -> str:
    server.start(wait=False)
    try:
        server.wait_until_ready()
    except AssertionError:
        assert server.stderr_tail().strip(), "it refused to start without a reason"
        return "refused to start"
    numbers, complaints = take_all(server)
    server.kill()
    if sorted(numbers) == list(range(COUNT)):
        return "harmless"
    words = server.stderr_tail().lower()
    if complaints or any(word in words for word in SAYS_SO):
        return "noticed"
    return "silently fewer"
