"""What every test may use: repeatable examples, optional local data, the reduced run."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

BESIDE = Path(__file__).parents[2] / "shared" / "data"

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("searching", deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def local_data():
    """Directory of optional local data; skips where there is none."""
    folder = Path(os.environ.get("DPMODELS_DATA", BESIDE))
    if not folder.is_dir():
        pytest.skip("no local data: set DPMODELS_DATA to a directory that holds them")
    return folder


@pytest.fixture(scope="session")
def reduced():
    """True where slow tests should take fewer runs (DPMODELS_REDUCED=1)."""
    return os.environ.get("DPMODELS_REDUCED", "0") != "0"
