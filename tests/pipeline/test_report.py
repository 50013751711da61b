"""The report: what it plots of which rows, and that it loads nothing from other hosts."""

import re

from penstock.domain.insights.questions import QUESTIONS
from penstock.domain.lake.layout import FACTS
from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.pipeline.jobs.breaker_tuning import BREAKER_TUNING
from penstock.pipeline.jobs.capacity import CAPACITY
from penstock.pipeline.jobs.outage_cost import OUTAGE_COST
from penstock.pipeline.jobs.poison import KINDS
from penstock.pipeline.jobs.rollups import ROLLUPS
from penstock.pipeline.jobs.scaling_backtest import SCALING_BACKTEST
from penstock.pipeline.jobs.slo import SLO
from penstock.pipeline.report import svg
from penstock.pipeline.report.contents import circuit_stretches, report
from penstock.pipeline.report.plots import (
    Band,
    PlotPoint,
    TimelineBar,
    ValueAt,
    bands,
    frontier,
    lines,
)
from penstock.pipeline.report.svg import Box, Scale
from penstock.pipeline.report.tables import MOST, TOP, Readings, SparkTable, percentile_of
from penstock.pipeline.runner import DaySpan
from tests.pipeline.rows import DT, NOON, at, computed


def test_a_scale_maps_ends_to_ends_and_clamps_values_outside():
    plain = Scale(low=0, high=10, from_px=100, to_px=0)
    log = Scale(low=1, high=100, from_px=0, to_px=10, is_log=True)

    assert [plain(v) for v in (0, 5, 10, 99)] == [100, 50, 0, 0]
    assert [log(v) for v in (1, 10, 100, 0)] == [0, 5, 10, 0]


def test_ticks_are_round():
    assert svg.linear_ticks(0, 11) == [0, 5, 10]
    assert svg.duration_ticks(1, 70_000) == [1, 10, 100, 1000, 10_000, 60_000]
    assert svg.time_ticks(0, DAY, most=8) == [n * 3 * HOUR for n in range(9)]


def test_labels_use_common_units():
    assert [svg.ms_label(ms) for ms in (5, 1_500, 90_000, 2 * HOUR)] == [
        "5 ms",
        "1.5 s",
        "1.5 min",
        "2 h",
    ]
    assert [svg.count_label(n) for n in (7, 1_500, 2_000_000)] == ["7", "1.5 k", "2 M"]
    assert [svg.time_label(t) for t in (NOON, NOON + 12 * HOUR)] == ["12:00", "Jan 02"]


def test_no_line_is_drawn_across_a_gap():
    points = [ValueAt(0, 1), ValueAt(MINUTE, 1), ValueAt(10 * MINUTE, 1), ValueAt(11 * MINUTE, 1)]

    drawn = lines(
        {"mail": points}, (0, HOUR), step_ms=MINUTE, format_value=svg.count_label, label="x"
    )

    assert drawn.count('class="line s1"') == 2


def test_a_band_has_a_line_and_two_shades():
    drawn = bands([Band(0, (1, 10, 100)), Band(1, (2, 20, 200))], (0, 2), step_ms=1, label="x")

    assert [drawn.count(f'class="{k}"') for k in ("line s1", "band near", "band far")] == [1, 1, 1]


def test_the_frontier_is_joined_and_the_recommended_one_is_ringed():
    spots = [
        PlotPoint(x=1, y=100, name="a", label="a", is_on_frontier=True),
        PlotPoint(x=2, y=10, name="b", label="b", is_on_frontier=True, is_recommended=True),
        PlotPoint(x=3, y=50, name="now", label="c", is_now=True),
    ]

    drawn = frontier(spots, x_label="cost", y_label="age", label="x")

    assert re.search(r'<path d="M[\d. ]+ L[\d. ]+" class="frontier"/>', drawn)
    assert drawn.count('class="ring"') == 1
    assert "b, recommended" in drawn
    assert ">now<" in drawn


def test_names_cannot_break_out_of_the_page():
    script = "<script>alert(1)</script>&"

    drawn = svg.drawing(
        Box(), [svg.text(0, 0, script), svg.dot(0, 0, 1, "spot", label=script)], label=script
    )

    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn


def test_a_circuit_is_open_until_it_is_half_open_or_closed():
    facts = [
        {"at": 10, "kind": "circuit_opened", "route": "/a"},
        {"at": 20, "kind": "circuit_half_opened", "route": "/a"},
        {"at": 25, "kind": "circuit_reopened", "route": "/a"},
        {"at": 30, "kind": "circuit_opened", "route": "/b"},
        {"at": 40, "kind": "circuit_closed", "route": "/a"},
    ]

    found = circuit_stretches(facts, (0, 100))

    # Those that were open longest come first; one that was not closed is open to the end.
    assert list(found) == ["/b", "/a"]
    assert found["/b"] == [TimelineBar(30, 100, "open", "/b: open for 70 ms")]
    assert [(s.from_at, s.to_at, s.kind) for s in found["/a"]] == [
        (10, 20, "open"),
        (20, 25, "half_open"),
        (25, 40, "open"),
    ]


def test_a_percentile_is_that_of_all_messages_of_the_histogram():
    assert percentile_of({40: 1, 0: 99}, 0.99) == 0
    assert (percentile_of({0: 50, 40: 50}, 0.99) or 0) > 800
    assert percentile_of({}, 0.99) is None


def test_an_empty_lake_has_a_page_that_says_so(driver):
    page = report(driver.lake, DaySpan())

    assert "No data for these days." in page


def kept(driver, table, *given):
    """As if its job had computed it."""
    rows = [{"dt": DT, **one} for one in given]
    driver.lake.replace(table, computed(driver.spark, table, *rows), [DT])


def test_totals_are_those_of_all_queues_and_details_those_of_the_worst(driver):
    names = [f"queue-{n:02}" for n in range(40)]
    day = {"dimension": "queue", "grain": "day", "at": NOON, "dead": 1, "attempts": 2}
    kept(
        driver,
        ROLLUPS,
        *(
            day | {"name": name, "finished": n, "failures": 1, "wait_histogram": {n % 4: 1}}
            for n, name in enumerate(names)
        ),
    )
    load = {"messages": 5, "per_second_peak": 0.5}
    kept(driver, CAPACITY, *({"queue": name, **load} for name in ("*", *names)))
    kept(
        driver,
        SLO,
        *({"queue": name, "objective": "wait", "burn": float(n)} for n, name in enumerate(names)),
    )
    replay = {"candidate": "now", "is_recommended": True, "rank": 1}
    kept(
        driver,
        BREAKER_TUNING,
        *(replay | {"route": f"/{n:02}", "outages": n} for n in range(40)),
        replay | {"route": "*", "outages": 0},
        replay | {"route": "*", "candidate": "other", "is_recommended": False, "rank": 2},
    )
    readings = Readings(driver.lake, DaySpan())

    total = readings.totals()
    assert (total.queues, total.finished, total.dead, total.failures) == (40, 780, 40, 40)
    assert total.waits == {0: 10, 1: 10, 2: 10, 3: 10}
    assert readings.busiest() == names[:-7:-1]
    assert [row["queue"] for row in readings.load()] == ["*"]
    assert [row["queue"] for row in readings.last_loads()] == ["*", *names[:TOP]]
    assert [row["queue"] for row in readings.targets()] == names[-MOST:]
    routes = [(row["route"], row["candidate"]) for row in readings.tuning()]
    assert routes == [("*", "now"), *((f"/{n:02}", "now") for n in range(11, 40))]


def test_answers_stream_rows_newest_day_first(driver):
    days = [("2030-01-01", "a"), ("2030-01-03", None), ("2030-01-02", "b")]
    rows = [{"dt": day, "queue": "mail", "kind": kind} for day, kind in days]
    table = SparkTable(computed(driver.spark, KINDS, *rows))

    assert [(row["dt"], row["kind"]) for row in table.rows("kind")] == [
        ("2030-01-03", None),
        ("2030-01-02", "b"),
        ("2030-01-01", "a"),
    ]
    assert [row["kind"] for row in table.rows("kind", kind=["a", None])] == [None, "a"]
    assert [row["kind"] for row in table.rows("kind", kind=["b"])] == ["b"]


def test_only_the_newest_changes_of_circuits_are_shown(driver, monkeypatch):
    monkeypatch.setattr("penstock.pipeline.report.tables.MAX_CHANGES", 2)
    circuit = {"subject": "abc", "data": '{"pattern": "/orders/(.*)"}'}
    driver.archive(
        FACTS,
        {"kind": "circuit_opened", "at": at("12:00:00"), **circuit},
        {"kind": "circuit_closed", "at": at("12:30:00"), **circuit},
        {"kind": "circuit_opened", "at": at("13:00:00"), **circuit},
    )

    found = Readings(driver.lake, DaySpan()).circuits()

    assert [row["at"] for row in found] == [at("12:30:00"), at("13:00:00")]


def test_the_page_has_every_section_and_loads_nothing_from_other_hosts(driver):
    name = "mail<1>"
    times = {f"{m}_p{p}_ms": p for m in ("wait", "service") for p in (50, 95, 99)}
    counts = dict.fromkeys(("finished", "done", "attempts"), 20) | {"dead": 0, "failures": 5}
    rolled = {"dimension": "queue", "name": name, "at": NOON, "backlog": 7, **counts, **times}
    kept(
        driver,
        ROLLUPS,
        rolled | {"grain": "minute"},
        rolled | {"grain": "day", "wait_histogram": {20: 20}, "service_histogram": {9: 20}},
    )
    target = {"queue": name, "objective": "wait", "limit_ms": 60_000, "percent": 99.0}
    kept(driver, SLO, target | {"bad": 1, "good_percent": 95.0, "burn": 5.0})
    tuned = {"route": "*", "candidate": "300s-80%", "is_recommended": True, "rank": 1}
    found = dict.fromkeys(("outages", "missed", "false_opens", "open_ms"), 0)
    settings = {"entries_max_age_ms": 300_000, "max_queue_sample_count": 4_000}
    kept(driver, BREAKER_TUNING, tuned | found | settings | {"error_threshold_percentage": 80})
    best = {"candidate": "now", "is_on_frontier": True, "is_recommended": True, "flaps": 0}
    cost = {"queue": name, "worker_hours": 2.0, "age_p99_ms": 900, "clear_max_ms": 5}
    kept(driver, SCALING_BACKTEST, best | cost)
    kept(driver, CAPACITY, {"queue": "*", "messages": 20, "per_second_peak": 0.5})
    outage = {"route": "/orders/(.*)", "from_at": NOON, "to_at": NOON + HOUR}
    kept(driver, OUTAGE_COST, outage | {"queue": name, "messages": 9, "late": 0, "dead": 3})
    circuit = {"subject": "abc", "data": '{"pattern": "/orders/(.*)"}'}
    driver.archive(
        FACTS,
        {"kind": "circuit_opened", **circuit},
        {"kind": "circuit_closed", "at": at("13:00:00"), **circuit},
    )

    page = report(driver.lake, DaySpan())

    assert f"{DT} to {DT}" in page
    for question in QUESTIONS.values():
        assert f"<h2>{question.text}</h2>" in page
    assert "3 messages died. By queue: mail&lt;1&gt; (3 dead)." in page
    assert "mail&lt;1&gt;, dead: 3" in page  # the chart
    assert "Not computed yet: run penstock pipeline run, which computes starvation." in page
    for heading in ("Latency", "Backlog", "Targets", "Circuits", "Capacity"):
        assert f"<h2>{heading}</h2>" in page
    assert "Nothing yet" not in page
    assert "mail&lt;1&gt;: wait for the first claim" in page
    assert "25 %" in page  # of attempts failed
    assert "/orders/(.*): open for 1 h" in page
    assert "<th>Max. age</th>" in page
    assert "<td>5 min</td><td>4,000</td><td>80 %</td>" in page
    assert "now, recommended" in page
    outside = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert outside == []
    assert "http" not in page
    assert "<script" not in page
