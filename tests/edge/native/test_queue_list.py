"""The list of queues: by name, page by page."""

from __future__ import annotations

import pytest

from tests.edge.api import Api, a_name, assert_refused


@pytest.fixture
def names(api: Api) -> list[str]:
    """Five queues that share a prefix of their own, in order."""
    prefix = a_name("list")
    found = [f"{prefix}.{letter}" for letter in "abcde"]
    for name in reversed(found):
        assert api.call("PUT", f"/v1/queues/{name}").status_code == 201
    return found


def test_queues_are_listed_by_name_with_their_counts(api: Api, names: list[str]) -> None:
    api.send(names[1])

    page = api.get("/v1/queues", prefix=names[0][:-1])

    assert [queue["name"] for queue in page["queues"]] == names
    assert [queue["counts"]["ready"] for queue in page["queues"]] == [0, 1, 0, 0, 0]
    assert page["next"] is None


def test_a_queue_reads_the_same_in_the_list_and_alone(api: Api, names: list[str]) -> None:
    api.send(names[0])

    [listed] = api.get("/v1/queues", prefix=names[0])["queues"]
    alone = api.queue(names[0])

    # The age of the oldest ready message is looked up only for a single queue.
    assert alone.pop("oldest_ready_at") is not None
    assert listed == alone


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_pages_follow_each_other_without_gap_or_repetition(
    api: Api, names: list[str], limit: int
) -> None:
    seen: list[str] = []
    query: dict[str, object] = {"prefix": names[0][:-1], "limit": limit}
    while True:
        page = api.get("/v1/queues", **query)
        assert len(page["queues"]) <= limit
        seen += [queue["name"] for queue in page["queues"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]

    assert seen == names


def test_a_prefix_is_taken_literally(api: Api, names: list[str]) -> None:
    assert api.get("/v1/queues", prefix="%")["queues"] == []
    assert api.get("/v1/queues", prefix="_ist")["queues"] == []
    assert api.get("/v1/queues", prefix=names[0].upper())["queues"] == []


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=-1", "limit=two", "limit=", "limit=1&limit=2", "name=a"],
)
def test_an_invalid_query_is_refused(api: Api, query: str) -> None:
    assert_refused(api.call("GET", f"/v1/queues?{query}"), 400, "invalid_request")


def test_queues_are_selected_by_label_state_and_problem(api: Api, names: list[str]) -> None:
    a, b, c, *_ = names
    for name, label in ((a, {"team": "x"}), (b, {"team": "y"}), (c, {"tier": ""})):
        api.call("PATCH", f"/v1/queues/{name}", {"labels": label})
    api.send(a)
    api.die(b)
    start = a[:-1]

    def listed(**query: object) -> list[str]:
        return [queue["name"] for queue in api.get("/v1/queues", prefix=start, **query)["queues"]]

    assert listed(label="team") == [a, b]
    assert listed(label="team=y") == [b]
    assert listed(label="tier") == [c]
    assert listed(label="none") == []
    assert listed(state="ready") == [a]
    assert listed(state="dead") == [b]
    assert listed(problem="dead") == [b]
    assert listed(problem="full") == []
    assert listed(problem="dead", label="team=x") == []
    for query in (
        {"problem": "sad"},
        {"state": "done"},
        {"sort": "size"},
        {"sort": "dead", "cursor": "x"},
    ):
        assert_refused(api.call("GET", "/v1/queues", params=query), 400, "invalid_request")


def test_queues_are_sorted_by_a_number_and_paged_in_that_order(api: Api, names: list[str]) -> None:
    for many, name in enumerate((names[2], names[0], names[4]), start=1):
        for _ in range(many):
            api.die(name)
    start = names[0][:-1]

    def pages(**query: object) -> list[str]:
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = api.get("/v1/queues", prefix=start, limit=2, cursor=cursor, **query)
            found += [queue["name"] for queue in page["queues"]]
            cursor = page["next"]
        return found

    assert pages(sort="dead") == [names[4], names[0], names[2], names[1], names[3]]
    assert pages(sort="dead", ascending="true")[-1] == names[4]
    assert pages(sort="name", ascending="true") == names[::-1]


def test_problems_are_counted_by_kind_beyond_the_limit(api: Api, names: list[str]) -> None:
    before = api.get("/v1/problems", limit=1)["queues_by_problem"].get("dead", 0)
    for name in names[:3]:
        api.die(name)

    report = api.get("/v1/problems", limit=1)

    assert len(report["problems"]) == 1
    assert report["queues_by_problem"]["dead"] == before + 3
