from pathlib import Path

import pytest

from tests.store.damage.stores import fill


@pytest.fixture(scope="module", params=[True, False], ids=["checksums", "plain"])
def crashed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of it is in the log.  To be copied, not changed."""
    return fill(tmp_path_factory.mktemp("crashed"), is_crash=True, checksums=request.param)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of it is in the database.  To be copied, not changed."""
    return fill(tmp_path_factory.mktemp("closed"), is_crash=False)
