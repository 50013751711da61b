"""The fleets file: what it declares, and which errors it is refused with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.domain.errors import DefaultProfileMissing, FleetsRefused, SourceUnknown
from penstock.domain.scaling.fleet import CommandSpec, External, Processes
from penstock.domain.scaling.fleet_sources import OwnSource, RabbitSource, staging_indicator_of
from penstock.domain.scaling.recommendation import Profile
from penstock.settings.fleets import FleetsFile, parse_fleets, read_fleets

LEAST = """
[profiles.default]

[fleets.mail]
queue = "mail"
replicas = {kind = "external"}
"""

ALL = """
group = "eu"
refresh_ms = "30s"
deadline_ms = 5000

[profiles.default]
samples_needed = 3

[profiles.eager]
samples_needed = 1
backlog_goal_s = 60
most_up = 10
count_leased = true
keep_busy = true

[sources.rabbit]
kind = "rabbitmq"
endpoint = "https://rabbit.example:15671/base"
user = "scaler"
password_env = "RABBIT_PASSWORD"
vhost = "shop"
staging_indicator = "»"
pressure_every_ms = "1m"

[pressure]
memory_percent = [60, 70, 80]
disk_free_mb = [4000, 2000, 1000]
yield_orders = [1, 2, 3]
alert_memory_percent = 50

[alerts]
every_ms = "5m"
url = "https://chat.example/alerts"

[fleets.mail]
queue = "mail"
source = "rabbit"
profile = "eager"
min = 1
max = 20
interval_ms = "5s"
cooldown_runs = 1
cooldown_up_runs = 2
cooldown_down_ms = "1m"
yield_order = 3
patience_ms = "1m"
routes = ["smtp"]
replicas = {kind = "processes", app = "shop.jobs:app", slots = 4, drain_ms = "2m"}

[fleets.reports]
queue = "reports"
replicas = {kind = "command", scale = ["scale", "{fleet}", "{wanted}"], count = ["count"]}
"""


def test_defaults_are_those_of_autoscale_workload_rabbit() -> None:
    fleets = parse_fleets(LEAST)

    [mail] = fleets.fleets.values()
    assert (mail.name, mail.queue, mail.source, mail.replicas) == (
        "mail",
        "mail",
        "own",
        External(),
    )
    assert (mail.interval_ms, mail.min, mail.max) == (10_000, 0, 5)
    assert (mail.cooldown_runs, mail.cooldown_up_runs, mail.cooldown_down_runs) == (0, None, None)
    assert mail.yield_order is None
    assert fleets.profile_of(mail) == Profile(samples_needed=10, backlog_goal_s=300)
    assert fleets.source_of(mail) == OwnSource()
    assert fleets.pressure.memory_percent == (70, 80, 90)
    assert fleets.pressure.disk_free_mb == (400, 200, 100)
    assert fleets.pressure.yield_orders == (1, 3, 5)
    assert (fleets.alerts.enabled, fleets.alerts.every_ms) == (True, 20 * 60_000)
    rabbit = RabbitSource()
    assert (rabbit.endpoint, rabbit.user, rabbit.vhost) == ("http://rabbitmq:15672", "guest", "/")
    assert (rabbit.pressure_every_ms, rabbit.staging_indicator) == (10_000, None)


def test_every_key_is_parsed() -> None:
    fleets = parse_fleets(ALL)

    mail, reports = fleets.fleets.values()
    assert (fleets.group, fleets.refresh_ms, fleets.deadline_ms) == ("eu", 30_000, 5_000)
    assert (mail.interval_ms, mail.cooldown_down_ms, mail.patience_ms) == (5_000, 60_000, 60_000)
    assert isinstance(mail.replicas, Processes)
    assert mail.replicas.drain_ms == 120_000
    assert isinstance(reports.replicas, CommandSpec)
    assert reports.replicas.scale == ("scale", "{fleet}", "{wanted}")
    assert fleets.profile_of(mail).most_up == 10
    assert staging_indicator_of(fleets.source_of(mail)) == "»"


def test_an_unknown_profile_is_the_default_one() -> None:
    fleets = parse_fleets(LEAST.replace("[fleets.mail]", '[fleets.mail]\nprofile = "fast"'))

    assert fleets.profile_of(fleets.fleets["mail"]) == Profile()


# ---- the three errors at start


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FleetsRefused, match="does not exist") as refused:
        read_fleets(tmp_path / "fleets.toml")

    assert refused.value.code == "fleets_refused"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[fleets", "not valid TOML"),
        ("group = 3", "group"),
        ("fleets = 3", "fleets: use tables"),
        ("[profiles.default]", "no fleet"),
        (LEAST.replace('queue = "mail"', ""), "fleets.mail: set either queue or queues"),
        (LEAST + 'queues = ["post"]', "fleets.mail: set either queue or queues"),
        (LEAST.replace('queue = "mail"', 'queues = ["a", "b", "a"]'), "fleets.mail: a queue is"),
        (LEAST.replace('queue = "mail"', 'queues = [""]'), "fleets.mail.queues"),
        (LEAST + "[profiles.x]\nbacklog_goal_s = 0", "profiles.x: no goal is set"),
        (LEAST + "[profiles.x]\nmessages_per_worker = 0", "profiles.x.messages_per_worker"),
        (LEAST + '[profiles.x]\noldest_goal_ms = "soon"', "profiles.x.oldest_goal_ms"),
        (
            LEAST.replace("[profiles.default]", '[profiles.default]\noldest_goal_ms = "30s"')
            + 'source = "r"\n[sources.r]\nkind = "rabbitmq"',
            "fleets.mail: profile default has oldest_goal_ms, but source r (rabbitmq) does not",
        ),
        (LEAST.replace('queue = "mail"', 'queue = ""'), "fleets.mail.queue"),
        (LEAST.replace("queue =", "queu ="), "did you mean queue"),
        (LEAST.replace("external", "pigeon"), "processes, command, kubernetes, external"),
        (LEAST.replace("fleets.mail", 'fleets."a b"'), "letters, digits"),
        (LEAST + "min = 6", "min (6) is greater than max (5)"),
        (LEAST + "min = -1", "fleets.mail.min"),
        (
            LEAST + '[[fleets.mail.schedule]]\ndays = ["someday"]',
            "fleets.mail.schedule[0]: days:",
        ),
        (LEAST + "[[fleets.mail.schedule]]\nfro = 3", "did you mean from?"),
        (
            LEAST + "[[fleets.mail.schedule]]\nmin = 6",
            "schedule[0]: min (6) is greater than max (5)",
        ),
        (LEAST + "max = 0", "fleets.mail.max"),
        (LEAST + 'interval_ms = "ten"', "fleets.mail.interval_ms: 'ten' is not a duration"),
        (LEAST + '[alerts]\nevery_ms = "ten"', "alerts.every_ms: 'ten' is not a duration"),
        (LEAST + "max = 99999999999999999999", "fleets.mail.max"),
        (LEAST + "min = 99999999999999999999", "fleets.mail.min"),
        (LEAST + "patience_ms = 99999999999999999999", "fleets.mail.patience_ms"),
        (LEAST + "[profiles.slow]\nbacklog_goal_s = 99999999999999999999", "backlog_goal_s"),
        (LEAST + '[alerts]\nurl = "notaurl"', "alerts.url: not a URL"),
        (LEAST + '[alerts]\nurl = "ftp://chat.example"', "alerts.url: not a URL"),
        (LEAST + '[alerts]\nurl = "https://:80/"', "alerts.url: not a URL"),
        (LEAST + '[alerts]\nurl = "https://chat:99999/"', "alerts.url: not a URL"),
        (LEAST + '[alerts]\nurl = "https://chat. example/"', "alerts.url: not a URL"),
        (
            LEAST + '[alerts]\nurl = "https://me:it@chat.example/"',
            "alerts.url: the URL must not contain cred",
        ),
        (LEAST + "interval_ms = 999", "fleets.mail.interval_ms"),
        (LEAST + "cooldown_runs = -1", "cooldown_runs"),
        (LEAST + "[profiles.slow]\nsamples_needed = 0", "profiles.slow.samples_needed"),
        (LEAST + "[profiles.slow]\nbacklog_goal_s = -1", "profiles.slow.backlog_goal_s"),
        (LEAST + "[pressure]\nmemory_percent = [90, 80, 70]", "must not decrease"),
        (LEAST + '[sources.r]\nkind = "rabbitmq"\nstaging_indicator = ""', "staging_indicator"),
        (LEAST + '[sources.r]\nkind = "rabbitmq"\nendpoint = "rabbit:15672"', "http://"),
        (
            LEAST + '[sources.r]\nkind = "rabbitmq"\nendpoint = "http://me:secret@rabbit:15672"',
            "sources.r.endpoint: the URL must not contain credentials",
        ),
        (
            LEAST + '[sources.r]\nkind = "rabbitmq"\nendpoint = "http://rabbit:15672?a=b"',
            "sources.r.endpoint: the URL must not have a query",
        ),
        (
            LEAST + '[sources.r]\nkind = "rabbitmq"\npassword_env = "A"\npassword_file = "b"',
            "password_file or password_env, not both",
        ),
        (LEAST + '[sources.own]\nkind = "rabbitmq"', "sources.own"),
        (
            LEAST + 'source = "s"\n[sources.s]\nkind = "sqs"',
            "fleets.mail: profile default has backlog_goal_s, but source s (sqs) does not report",
        ),
        (LEAST + '[sources.s]\nkind = "sqs"\nregion = "eu west"', "sources.s.region"),
        (LEAST + '[sources.s]\nkind = "sqs"\naccount = "12"', "sources.s.account"),
        (LEAST + '[sources.s]\nkind = "sqs"\nendpoint = "sqs"', "sources.s.endpoint: not a URL"),
        (
            LEAST + 'source = "s"\n[sources.s]\nkind = "redis"',
            "fleets.mail: profile default has backlog_goal_s, but source s (redis) does not report",
        ),
        (LEAST + '[sources.s]\nkind = "redis"\nurl = "http://r"', "sources.s.url: not a URL"),
        (
            LEAST + '[sources.s]\nkind = "redis"\nurl = "redis://:p@r"',
            "sources.s.url: the URL must not contain",
        ),
        (LEAST + '[sources.s]\nkind = "redis"\nurl = "redis://r/x"', "number of a database"),
        (LEAST + '[sources.s]\nkind = "redis"\ntype = "stream"', "a stream needs group"),
        (LEAST + '[sources.s]\nkind = "redis"\ngroup = "g"', "sources.s: group requires"),
        (LEAST + '[sources.s]\nkind = "redis"\ntype = "set"', "sources.s.type"),
        (LEAST + '[sources.s]\nkind = "prometheus"', "sources.s: Object missing required field"),
        (
            LEAST + '[sources.s]\nkind = "prometheus"\nready_query = "a"\noldest_query = "b"',
            "sources.s: oldest_query also needs leased_query or consume_query",
        ),
        (
            LEAST + '[sources.s]\nkind = "prometheus"\nready_query = "a"\nuser = "b"',
            "sources.s: user needs token_file or token_env",
        ),
        (
            LEAST + 'source = "s"\n[sources.s]\nkind = "prometheus"\nready_query = "a"',
            "but source s (prometheus) does not report rates; set messages_per_worker",
        ),
    ],
)
def test_an_invalid_file_is_refused_with_the_place_and_the_reason(text: str, error: str) -> None:
    with pytest.raises(FleetsRefused) as refused:
        parse_fleets(text)

    assert error in str(refused.value)
    assert refused.value.code == "fleets_refused"


def test_the_error_about_a_url_does_not_repeat_it() -> None:
    for text in (
        '[sources.r]\nkind = "rabbitmq"\nendpoint = "http://me:secret@rabbit:15672"',
        '[alerts]\nurl = "https://me:secret@chat.example/"',
        '[alerts]\nurl = "chat.example/secret"',
    ):
        with pytest.raises(FleetsRefused) as refused:
            parse_fleets(LEAST + text)

        assert "secret" not in str(refused.value)


def test_a_missing_default_profile_is_refused() -> None:
    with pytest.raises(DefaultProfileMissing) as refused:
        parse_fleets(LEAST.replace("profiles.default", "profiles.other"))

    assert refused.value.code == "default_profile_missing"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (LEAST + 'source = "rabbit"', "fleets.mail: unknown source 'rabbit'; known: own"),
        (LEAST + '[sources.k]\nkind = "kafka"', "sources.k: unknown kind 'kafka'"),
        (LEAST + "[sources.k]\n", "unknown kind None"),
    ],
)
def test_an_unknown_source_is_refused(text: str, error: str) -> None:
    with pytest.raises(SourceUnknown) as refused:
        parse_fleets(text)

    assert error in str(refused.value)
    assert refused.value.code == "source_unknown"


def test_an_error_names_the_file_and_keeps_its_code(tmp_path: Path) -> None:
    path = tmp_path / "fleets.toml"
    path.write_text(LEAST.replace("profiles.default", "profiles.other"))

    with pytest.raises(DefaultProfileMissing, match=r"fleets\.toml"):
        read_fleets(path)


# ---- changes


def test_a_file_that_differs_from_the_last_read_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "fleets.toml"
    path.write_text(LEAST)
    file = FleetsFile(path)
    file.read()
    assert not file.is_changed()

    path.write_text(LEAST + "min = 2")
    assert file.is_changed()
    assert file.read().fleets["mail"].min == 2
    assert not file.is_changed()

    os.utime(path, ns=(1, 1))
    assert file.is_changed()


def test_an_invalid_change_is_read_only_once(tmp_path: Path) -> None:
    path = tmp_path / "fleets.toml"
    path.write_text(LEAST)
    file = FleetsFile(path)
    file.read()
    path.unlink()

    assert file.is_changed()
    with pytest.raises(FleetsRefused):
        file.read()

    assert not file.is_changed()
