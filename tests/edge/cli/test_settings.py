"""`penstock settings`"""

from __future__ import annotations

from pathlib import Path


def test_settings_are_shown_with_their_origins(run, monkeypatch):
    Path("penstock.toml").write_text("[history]\nretention_days = 30\n")
    monkeypatch.setenv("PENSTOCK_SERVER_PORT", "8000")

    records = {r["key"]: r for r in run("settings", "--set", "data=/srv", "--json").records}

    assert (records["data"]["value"], records["data"]["source"]) == ("/srv", "--set")
    assert (records["server.port"]["value"], records["server.port"]["place"]) == (8000, "env")
    assert records["history.retention_days"]["source"] == "penstock.toml"
    assert records["log.level"]["place"] == "default"
    assert "PENSTOCK_SERVER_PORT" in run("settings").out


def test_a_password_is_not_shown(run):
    for url in ("postgresql://me:s3cret@db/x", "postgresql://db/x?user=me&password=s3cret&a=b"):
        assert "s3cret" not in run("settings", "--store", url).out
        assert "s3cret" not in run("settings", "--store", url, "--json").out


def test_the_template_is_a_valid_config_file(run):
    Path("penstock.toml").write_text(run("settings", "--toml").out)

    assert run("settings").code == 0
