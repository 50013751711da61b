"""What a reload is based on: changed files, and the errors of modules that cannot be imported."""

from __future__ import annotations

import os

import pytest

from penstock.domain.errors import InvalidRequest
from penstock.worker.processes.file_watch import FileWatch
from penstock.worker.processes.startup import load_app


def test_changes_are_reported_together_once_they_have_settled(tmp_path):
    (tmp_path / "shop").mkdir()
    files = [tmp_path / "shop" / name for name in ("jobs.py", "books.py")]
    files[0].write_text("a = 1")
    watch = FileWatch([str(tmp_path)])
    assert watch.settled() == []

    files[0].write_text("a = 12")
    assert watch.settled() == []
    files[1].write_text("b = 1")
    assert watch.settled() == []

    assert watch.settled() == [str(file) for file in sorted(files)]
    assert watch.settled() == []

    files[0].unlink()
    watch.settled()
    assert watch.settled() == [str(files[0])]


def test_a_file_of_the_same_size_is_seen_by_its_time(tmp_path):
    file = tmp_path / "jobs.py"
    file.write_text("a = 1")
    watch = FileWatch([str(tmp_path)])
    file.write_text("a = 2")
    os.utime(file, ns=(1, 1))
    watch.settled()

    assert watch.settled() == [str(file)]


def test_other_files_and_folders_of_tools_are_not_watched(tmp_path):
    for name in ("__pycache__", ".git", "env"):
        (tmp_path / name).mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    watch = FileWatch([str(tmp_path)])
    for place in ("__pycache__/a.py", ".git/a.py", "env/a.py", "jobs.db"):
        (tmp_path / place).write_text("x")
    watch.settled()

    assert watch.settled() == []


@pytest.mark.parametrize(
    ("text", "place", "error"),
    [
        ("import nowhere_at_all", "broken_0:app", "line 1, in <module>\n    import nowhere_at_all"),
        ("def x(:", "broken_1:app", "SyntaxError: invalid syntax"),
        ("import sys\nsys.exit('DATABASE_URL is not set')", "broken_2:app", "DATABASE_URL is not"),
        ("", "broken_33:app", r"there is no module 'broken_33' .* did you mean broken_3\?"),
        ("", "broken_4.jobs:app", "cannot be imported"),
        ("", "broken_5:app", "there is no such name"),
        ("app = 5", "broken_6:app", "it is of type int"),
        (
            "from penstock import Penstock\nmine = Penstock('sqlite:///x.db')",
            "broken_7:app",
            r"did you mean broken_7:mine\?",
        ),
    ],
)
def test_an_application_that_cannot_be_loaded_says_why(
    text, place, error, tmp_path, monkeypatch, request
):
    number = request.node.callspec.indices["text"]
    (tmp_path / f"broken_{number}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(InvalidRequest, match=error) as raised:
        load_app(place)

    assert "importlib" not in str(raised.value)
    assert "penstock/worker" not in str(raised.value)


def test_the_causes_of_an_import_error_are_shown_without_frames_of_ours(tmp_path, monkeypatch):
    (tmp_path / "inner_part.py").write_text("1 / 0")
    (tmp_path / "outer_part.py").write_text(
        "try:\n    import inner_part\n"
        "except ZeroDivisionError as error:\n    raise OSError('no') from error"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(InvalidRequest) as raised:
        load_app("outer_part:app")

    text = str(raised.value)
    assert text.index("ZeroDivisionError: division by zero") < text.index("OSError: no")
    assert "importlib" not in text
