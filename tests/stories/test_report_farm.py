"""A farm of external workers: one of them is killed at its task, and so is the server.

External workers speak HTTP only; the story is played on a server with each store.
"""

from __future__ import annotations

from collections import Counter

from penstock.client.remote.server import Remote
from penstock.domain.message.lifecycle import State
from tests.edge.izenda.client import IzendaClient
from tests.stories.environment import StoryEnvironment

WORKERS = 3
KINDS = {"Report": 12, "Broken": 3, "Slow": 2}


def test_every_task_has_one_outcome_although_a_worker_and_the_server_are_killed(
    embedded_environment: StoryEnvironment,
) -> None:
    environment = embedded_environment
    environment.serve(workers_valid_ms="5s", workers_beat_ms="1s")
    farm = {
        program.pid: program
        for program in (
            environment.run("tests.stories.report_farm", f"worker-{n}") for n in range(WORKERS)
        )
    }
    producer = IzendaClient(environment.api)
    tasks = {
        f"{kind}-{n}": producer.enqueue(kind, data=f"{kind}-{n}")
        for kind, count in KINDS.items()
        for n in range(count)
    }

    first = environment.until(lambda: holders(environment, "Slow-0"))
    farm[first[0]].kill()
    environment.until(lambda: sum(line.startswith("end") for line in environment.lines()) >= 5)
    environment.kill_server()
    environment.server.start()
    second = environment.until(lambda: holders(environment, "Slow-0")[1:])
    for name in ("Slow-0", "Slow-1"):
        (environment.folder / f"gate-{name}").touch()
    expected = {name: "failed" if "Broken" in name else "succeeded" for name in tasks}
    environment.until(
        lambda: {name: producer.status(task) for name, task in tasks.items()} == expected
    )

    assert second[0] in farm, "another worker of the farm has taken it over"
    assert second[0] != first[0]
    ended = Counter(line.split()[1] for line in environment.lines() if line.startswith("end"))
    assert set(ended.values()) <= {1}, "one outcome was accepted for each task"
    with Remote(environment.server.url) as server:
        for name, task in tasks.items():
            endings = server.history.of(task).endings
            outcome = State.DEAD if "Broken" in name else State.DONE
            assert [ending.outcome for ending in endings] == [outcome], name
    assert environment.totals("tasks") == {"dead": KINDS["Broken"], "done": KINDS["Report"] + 2}


def holders(environment: StoryEnvironment, name: str) -> list[int]:
    """The processes that have begun a task, in their order."""
    begun = [line.split() for line in environment.lines()]
    return [int(pid[0]) for verb, task, *pid in begun if verb == "begin" and task == name]
