"""Settings: loading them from four places, checking them, and rendering them as text."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.domain.duration import duration_ms, duration_text
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import Limits
from penstock.settings import Flag, Loaded, Place, Settings, load
from penstock.settings.catalogue import catalogue
from penstock.settings.store_url import check_store_url
from penstock.settings.text import render, size_bytes, size_text, toml_template
from penstock.settings.workers import WorkersSettings


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def from_file(text: str, **more) -> Loaded:
    path = Path("some.toml")
    path.write_text(text)
    return load(config=path, env={}, **more)


def test_without_any_configuration_the_settings_are_the_defaults():
    loaded = load(env={})

    assert loaded.settings == Settings()
    assert {origin.place for origin in loaded.origins.values()} == {Place.DEFAULT}


def test_a_later_place_wins_over_an_earlier_one():
    Path("penstock.toml").write_text("[server]\nport = 1\ndrain_ms = 1\nmax_connections = 1\n")
    env = {"PENSTOCK_SERVER_PORT": "2", "PENSTOCK_SERVER_DRAIN_MS": "2"}

    server = load(env=env, flags={"server.port": Flag("--port", "3")}).settings.server

    assert (server.port, server.drain_ms, server.max_connections) == (3, 2, 1)
    assert server.idle_timeout_ms == Settings().server.idle_timeout_ms


def test_a_value_equal_to_the_default_still_wins_over_an_earlier_place():
    Path("penstock.toml").write_text("[server]\nport = 1\n")

    loaded = load(env={"PENSTOCK_SERVER_PORT": "7654"})

    assert loaded.settings.server.port == 7654


def test_every_value_has_its_origin():
    Path("penstock.toml").write_text('data = "/srv"\n')
    env = {"PENSTOCK_LOG_LEVEL": "debug"}

    origins = load(env=env, flags={"server.port": Flag("--port", "1")}).origins

    rendered = {
        key: str(origins[key]) for key in ("data", "log.level", "server.port", "log.format")
    }
    assert rendered == {
        "data": "penstock.toml",
        "log.level": "PENSTOCK_LOG_LEVEL",
        "server.port": "--port",
        "log.format": "default",
    }


def test_the_file_is_the_one_named_by_the_flag_then_by_the_variable_then_in_this_folder():
    for name in ("flag.toml", "env.toml", "penstock.toml"):
        Path(name).write_text(f'data = "{name}"\n')
    env = {"PENSTOCK_CONFIG": "env.toml"}

    assert load(config="flag.toml", env=env).settings.data == "flag.toml"
    assert load(env=env).settings.data == "env.toml"
    assert load(env={}).settings.data == "penstock.toml"


def test_durations_and_sizes_may_have_units_everywhere():
    text = '[server]\ndrain_ms = "1m"\n[limits]\nmax_body_bytes = "64KiB"\nmax_wait_ms = 5\n'

    settings = from_file(text, flags={"aweq.lease_ms": Flag("--set", "2h")}).settings

    assert settings.server.drain_ms == 60_000
    assert settings.limits == Limits(max_body_bytes=65_536, max_wait_ms=5)
    assert settings.aweq.lease_ms == 7_200_000


@pytest.mark.parametrize("text", ["true", "yes", "on", "1", "TRUE"])
def test_a_switch_in_the_environment_accepts_the_usual_words(text):
    assert load(env={"PENSTOCK_QUEUES_AUTO_CREATE": text}).settings.queues.auto_create


@pytest.mark.parametrize(
    ("text", "key", "allowed"),
    [
        ("[server]\nport = 70000", "server.port", "from 0 to 65535"),
        ("[server]\nport = true", "server.port", "a whole number"),
        ("[server]\nport = 1.5", "server.port", "a whole number"),
        ('[server]\ndrain_ms = "soon"', "server.drain_ms", "a duration"),
        ("[server]\nhost = 1", "server.host", "text"),
        ('[queues]\nauto_create = "maybe"', "queues.auto_create", "true or false"),
        ('[log]\nlevel = "loud"', "log.level", "debug, info, warning, error"),
        ('[limits]\nmax_body_bytes = "0B"', "limits.max_body_bytes", "from 1B to 64MiB"),
        ('data = ""', "data", "text"),
    ],
)
def test_an_invalid_value_is_reported_with_its_key_its_origin_and_the_allowed_values(
    text, key, allowed
):
    with pytest.raises(InvalidRequest) as refused:
        from_file(text)

    assert str(refused.value).startswith(f"{key} (from some.toml) is ")
    assert allowed in str(refused.value)


@pytest.mark.parametrize(
    "text", ["prot = 1", "[server]\nprot = 1", "[sever]\nport = 1", "[server.port]\na = 1"]
)
def test_an_unknown_key_in_the_file_is_refused(text):
    with pytest.raises(InvalidRequest, match=r"some\.toml"):
        from_file(text)


def test_a_mistyped_variable_is_refused_with_a_hint():
    with pytest.raises(InvalidRequest, match="did you mean PENSTOCK_SERVER_PORT"):
        load(env={"PENSTOCK_SERVER_PROT": "1"})


def test_variables_that_are_not_settings_are_ignored():
    env = {"PENSTOCK_TEST_POSTGRES_BIN": "/x", "PENSTOCK_QUEUES_CREATE_LEASE": "1s", "HOME": "/"}

    assert load(env=env, other_env={"PENSTOCK_QUEUES_CREATE_LEASE"}).settings == Settings()


def test_a_config_file_that_is_named_must_exist():
    with pytest.raises(InvalidRequest, match=r"config file nowhere\.toml does not exist"):
        load(config="nowhere.toml", env={})


def test_a_file_that_is_not_toml_is_refused():
    with pytest.raises(InvalidRequest, match=r"cannot read config file some\.toml"):
        from_file("port: 1")


@pytest.mark.parametrize(
    "text",
    [
        '[server]\ntls_cert = "a.pem"',
        '[sqs]\naccount = "12345"',
        '[sqs]\nregion = "US East"',
        '[sqs]\npublic_url = "https://queues.example.org/path"',
        '[store]\nurl = "oracle://x"',
        '[aweq]\nqueue = "a b"',
        '[server]\nhost = "0.0.0.0"\n[auth]\nrequired = "never"',
    ],
)
def test_invalid_and_contradicting_values_are_refused(text):
    with pytest.raises(InvalidRequest):
        from_file(text)


def test_the_store_is_in_the_data_folder_unless_it_is_named():
    assert load(env={"PENSTOCK_DATA": "/srv"}).settings.sqlite_path == Path("/srv/penstock.db")
    named = load(env={"PENSTOCK_STORE_URL": "sqlite:////var/q.db"}).settings
    assert named.sqlite_path == Path("/var/q.db")
    assert load(env={"PENSTOCK_STORE_URL": "postgresql://db/x"}).settings.sqlite_path is None


def test_an_empty_text_unsets_an_optional_setting():
    Path("penstock.toml").write_text('[store]\nurl = "postgresql://db/x"\n')

    assert load(env={"PENSTOCK_STORE_URL": ""}).settings.store.url is None


def test_the_template_with_everything_uncommented_is_the_defaults():
    lines = toml_template().splitlines()
    text = "\n".join(
        line[1:] if line.startswith("#") and line[1:2] != " " else line for line in lines
    )

    document = tomllib.loads(text)

    assert from_file(text).settings == Settings()
    assert sum(len(v) if isinstance(v, dict) else 1 for v in document.values()) == len(catalogue())


def test_every_setting_has_a_description_and_every_number_a_range():
    for setting in catalogue().values():
        assert setting.text, setting.key
        if setting.type is int:
            assert setting.low is not None, setting.key
            assert setting.high is not None, setting.key
            if setting.default is not None:
                assert setting.low <= int(setting.default) <= setting.high, setting.key


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("500", 500),
        ("500ms", 500),
        ("30s", 30_000),
        ("1.5s", 1_500),
        ("5 m", 300_000),
        ("12h", 43_200_000),
        ("7d", 604_800_000),
        ("1h30m", 5_400_000),
    ],
)
def test_durations_are_parsed_with_their_units(text, ms):
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", "1x", "1h30", "0.5", "1.2.3s", "one minute", "1S"]
)
def test_an_ambiguous_duration_is_refused(text):
    with pytest.raises(ValueError, match="is not a duration"):
        duration_ms(text)


@pytest.mark.parametrize(
    ("text", "size"), [("1MiB", 2**20), ("64KiB", 2**16), ("5", 5), ("1kB", 1000)]
)
def test_sizes_are_parsed_with_their_units(text, size):
    assert size_bytes(text) == size


@pytest.mark.parametrize("setting", catalogue().values(), ids=lambda setting: setting.key)
def test_a_rendered_value_parses_back_to_the_same_value(setting):
    if isinstance(setting.default, int) and not isinstance(setting.default, bool):
        text = render(setting, setting.default)

        assert load(env={setting.env: text}).settings == Settings()


def test_values_are_rendered_in_the_shortest_exact_unit():
    assert [duration_text(ms) for ms in (0, 90_000, 120_000, 1_001)] == [
        "0ms",
        "90s",
        "2m",
        "1001ms",
    ]
    assert [size_text(size) for size in (0, 1_024, 1_025)] == ["0B", "1KiB", "1025B"]


def test_a_new_file_can_be_created_without_checksums():
    settings = load(env={"PENSTOCK_STORE_URL": "sqlite:///shop.db?checksums=off"}).settings

    assert settings.sqlite_path == Path("shop.db")
    assert not settings.sqlite_checksums
    assert Settings().sqlite_checksums


def test_an_unknown_option_of_a_file_is_refused():
    with pytest.raises(InvalidRequest, match="takes no option but"):
        load(env={"PENSTOCK_STORE_URL": "sqlite:///shop.db?checksum=off"})


def test_a_data_folder_may_have_a_question_mark_in_its_name():
    settings = Settings(data="what?")

    assert settings.sqlite_path == Path("what?/penstock.db")
    assert settings.sqlite_checksums


def test_heartbeats_are_more_frequent_than_a_worker_expires():
    with pytest.raises(InvalidRequest, match=r"workers\.beat_ms"):
        from_file('[workers]\nbeat_ms = "3m"\n')
    assert from_file(
        '[workers]\nvalid_ms = "1m"\nbeat_ms = "20s"\n'
    ).settings.workers == WorkersSettings(valid_ms=60_000, beat_ms=20_000)


def test_the_number_of_embedded_workers_is_optional():
    assert Settings().workers.embedded is None
    assert from_file("[workers]\nembedded = 0\n").settings.workers.embedded == 0
    with pytest.raises(InvalidRequest, match="from 0 to 1000"):
        from_file("[workers]\nembedded = -1\n")


def test_the_queue_of_tasks_needs_a_valid_name():
    with pytest.raises(InvalidRequest, match="a queue name"):
        from_file('[tasks]\nqueue = "no such!"\n')


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ('path = "push"', r"push\.path is .*; use a path"),
        ('path = "/"', r"push\.path is .*; use a path"),
        ('path = "/a b"', r"push\.path is .*; use a path"),
        ('rules_path = "/{a}"', r"push\.rules_path is .*; use a path"),
        ('circuits_path = "/v1/x"', "must not begin with /v1"),
        ('circuits_path = "/push/circuits"', "overlap; neither may contain"),
        ('path = "/admin/v1"', "overlap; neither may contain"),
        ('logging_path = "/admin/v1/circuitbreaker/"', "overlap; neither may contain"),
    ],
)
def test_push_paths_overlap_neither_each_other_nor_the_native_api(wrong, text):
    with pytest.raises(InvalidRequest, match=text):
        from_file(f"[push]\n{wrong}\n")


def test_a_trailing_slash_of_a_path_is_ignored():
    push = from_file('[push]\npath = "/in/queue/"\n').settings.push

    assert push.paths["path"] == "/in/queue"
    assert push.paths["circuits_path"] == "/queuecircuitbreaker/circuit"


def test_denied_networks_must_be_networks():
    assert from_file('[push]\ndeny = "10.0.0.0/8, ::1"\n').settings.push.deny == "10.0.0.0/8, ::1"
    with pytest.raises(InvalidRequest, match=r"push\.deny .* 'everything'"):
        from_file('[push]\ndeny = "10.0.0.0/8, everything"\n')


@pytest.mark.parametrize(
    "url",
    [
        "postgress://ada:s3cret@db/shop",
        "postgresql:/ada:s3cret@db/shop",
        "ada:s3cret@db/shop",
        "oracle://ada:s3@cret@db/shop",
        "host=db password=s3cret",
    ],
)
def test_an_error_about_a_store_url_never_shows_its_password(url):
    with pytest.raises(InvalidRequest, match="postgresql://") as refused:
        check_store_url(url)

    assert "cret" not in str(refused.value)
    with pytest.raises(InvalidRequest) as refused:
        Penstock(url)
    assert "cret" not in str(refused.value)
