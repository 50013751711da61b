"""The check of the secret file."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.store.finding import Grade
from penstock.settings import Settings
from penstock.settings.values import AuthSettings
from penstock.wiring.maintenance import examine


@pytest.mark.parametrize(
    ("text", "mode", "grade"),
    [
        ("5f" * 32, 0o600, Grade.OK),
        ("5f" * 32, 0o640, Grade.WARN),
        ("short", 0o600, Grade.FAIL),
        (None, 0, Grade.FAIL),
    ],
)
def test_a_secret_file_is_readable_for_its_owner_and_long_enough(
    tmp_path: Path, text: str | None, mode: int, grade: Grade
) -> None:
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    settings = Settings(data=str(tmp_path / "data"), auth=AuthSettings(secret_file=str(path)))

    [found] = [finding for finding in examine(settings) if finding.name == "secret file"]

    assert found.grade is grade
    assert str(path) in found.text
    assert "5f5f" not in found.text


def test_without_a_secret_file_there_is_no_finding(tmp_path: Path) -> None:
    findings = list(examine(Settings(data=str(tmp_path))))

    assert "secret file" not in [finding.name for finding in findings]
