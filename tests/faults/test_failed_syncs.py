"""Row 13 without a server: syncs fail and the power is cut anywhere, over and over, by the seed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.faults.directory import Names
from tests.faults.disk import Loss
from tests.faults.figures import figure
from tests.faults.rig import Rig, rigged

WALKS = figure(30, 1000)
STEPS = 40
SLICE = 10


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store large enough that two commits do not touch the same pages."""
    folder = tmp_path_factory.mktemp("filled")
    with rigged(folder, 0) as rig:
        for _ in range(12):
            assert rig.send(50, 100)
        rig.claim(200)
        rig.restart()
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "data"))


@pytest.mark.parametrize("start", range(0, WALKS, SLICE))
def test_whatever_syncs_fail_a_power_cut_takes_nothing_acknowledged(
    filled: Path, tmp_path: Path, start: int
) -> None:
    for seed in range(start, start + SLICE):
        folder = Path(shutil.copytree(filled, tmp_path / str(seed)))
        pages = (5, 40, 10_000)[seed % 3]
        with rigged(folder, seed, checkpoint_pages=pages) as rig:
            walk(rig, random.Random(seed))
        shutil.rmtree(folder)


def walk(rig: Rig, dice: random.Random) -> None:
    for _ in range(STEPS):
        rig.loss, rig.names = dice.choice([*Loss, Loss.EVERYTHING]), dice.choice(list(Names))
        if dice.random() < 0.3:
            rig.trouble.syncs_fail = dice.choice((0.0, 0.3, 0.5))
            rig.trouble.failed_sync_keeps = dice.choice((0.0, 0.0, 0.5, 1.0))
        if dice.random() < 0.1:
            rig.trouble.cut_at = rig.trouble.calls + dice.randint(1, 60)
        move(rig, dice)
        if rig.trouble.is_off or dice.random() < 0.15:
            rig.cut_power()
            rig.assert_kept()


def move(rig: Rig, dice: random.Random) -> None:
    match dice.randrange(12):
        case 0 | 1 | 2 | 3:
            rig.send(dice.choice((1, 1, 20)), dice.choice((10, 3000)))
        case 4 | 5 | 6:
            rig.claim(dice.choice((1, 100)))
        case 7 | 8:
            rig.complete()
        case 9:
            rig.read()
        case 10:
            rig.kill()
        case 11:
            rig.restart()
