"""Only one module reads the time and one draws random numbers; others get them as arguments."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, plant, trees, uses_of

CLOCK_READS = {
    *(f"time.{name}" for name in ("time", "monotonic", "perf_counter", "process_time")),
    *(f"time.{name}_ns" for name in ("time", "monotonic", "perf_counter", "process_time")),
    *(f"time.{name}" for name in ("clock_gettime", "clock_gettime_ns", "thread_time")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
    "uuid.uuid1",
    "uuid.uuid6",
    "uuid.uuid7",
}
CLOCK_READS_WITHOUT_ARGUMENT = {"gmtime", "localtime", "ctime", "asctime"}
DRAWS = {
    "random",
    "numpy.random",
    "os.urandom",
    "os.getrandom",
    "uuid.uuid1",
    "uuid.uuid4",
    *(f"secrets.{name}" for name in ("token_bytes", "token_hex", "token_urlsafe")),
    *(f"secrets.{name}" for name in ("choice", "randbelow", "randbits", "SystemRandom")),
}


def test_only_the_clock_reads_the_time():
    assert clock_reads(PACKAGE) == []


def test_only_the_dice_draw_random_numbers():
    assert draws(PACKAGE) == []


def test_only_the_loop_sleeps():
    assert sleeps(PACKAGE) == []


@pytest.mark.parametrize(
    "leak",
    [
        "import time\nstarted = time.time()",
        "import time as t\nstarted = t.monotonic_ns()",
        "from time import perf_counter as tick",
        "import time\ndef run(clock=time.monotonic): ...",
        "import datetime\nnow = datetime.datetime.now(datetime.UTC)",
        "from datetime import datetime, UTC\nnow = datetime.now(UTC)",
        "from datetime import date\ntoday = date.today()",
        "import time\nparts = time.gmtime()",
        "import asyncio\nnow = asyncio.get_running_loop().time()",
        "def wait(self): return self._loop.time()",
        "import uuid\nidentity = uuid.uuid1()",
    ],
)
def test_a_planted_clock_read_is_found(tmp_path, leak):
    package = plant(tmp_path, "services/messages.py", leak)

    assert clock_reads(package)


def test_reading_the_time_is_what_the_clock_is_for(tmp_path):
    package = plant(tmp_path, "outbound/clock.py", "import time\nnow = time.time()")

    assert clock_reads(package) == []


def test_rendering_a_given_time_does_not_read_a_clock(tmp_path):
    given = "import time\nfrom datetime import datetime, UTC\n"
    package = plant(
        tmp_path, "edge/a.py", f"{given}time.gmtime(1)\ndatetime.fromtimestamp(1, UTC).time()"
    )

    assert clock_reads(package) == []


@pytest.mark.parametrize(
    "leak",
    [
        "import random\nx = random.random()",
        "from random import shuffle",
        "import uuid\nidentity = uuid.uuid4()",
        "import os\nnonce = os.urandom(16)",
        "from secrets import token_hex",
    ],
)
def test_a_planted_draw_is_found(tmp_path, leak):
    assert draws(plant(tmp_path, "domain/message/retry.py", leak))


def test_comparing_secrets_does_not_draw_randomness(tmp_path):
    package = plant(tmp_path, "services/access.py", "import secrets\nsecrets.compare_digest(a, b)")

    assert draws(package) == []


def test_a_planted_sleep_is_found(tmp_path):
    assert sleeps(plant(tmp_path, "runtime/reaper.py", "import time\ntime.sleep(1)"))


def clock_reads(package: Path) -> list[str]:
    allowed_in = {"outbound/clock.py"}
    reads = list(uses_of(CLOCK_READS, package, allowed_in=allowed_in))
    for place, tree in trees(package):
        if place not in allowed_in:
            reads += [f"{place}:{line}: {what}" for line, what in _reads_by_call(tree)]
    return reads


def draws(package: Path) -> list[str]:
    # `from random import shuffle` counts as a use of random.
    banned = _Prefixed(DRAWS)
    return list(uses_of(banned, package, allowed_in={"outbound/dice.py"}))


def sleeps(package: Path) -> list[str]:
    return list(uses_of({"time.sleep"}, package, allowed_in={"runtime/loop.py"}))


def _reads_by_call(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or node.args or node.keywords:
            continue
        text = ast.unparse(node.func)
        owner, _, name = text.rpartition(".")
        if owner == "time" and name in CLOCK_READS_WITHOUT_ARGUMENT:
            yield node.lineno, text
        if name == "time" and "loop" in owner.rpartition(".")[2].lower():
            yield node.lineno, text


class _Prefixed(frozenset[str]):
    """Holds a name and all that lies under it."""

    def __contains__(self, name: object) -> bool:
        parts = str(name).split(".")
        return any(".".join(parts[:n]) in set(self) for n in range(1, len(parts) + 1))
