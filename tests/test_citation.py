"""What is cited is what is installed."""

from importlib.metadata import metadata
from pathlib import Path

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError

ROOT = Path(__file__).parents[1]


def test_all_say_the_same_version():
    installed = metadata("dpmodels")
    assert installed["Version"] == dp.__version__
    assert installed["Author"] in dp.citation()
    for form in ("text", "bibtex", "cff"):
        assert dp.__version__ in dp.citation(form)


def test_the_file_in_the_folder_is_the_one_that_is_told():
    assert (ROOT / "CITATION.cff").read_text("utf-8") == dp.citation("cff")


def test_unknown_forms_are_refused():
    with pytest.raises(ArgumentError, match="format"):
        dp.citation("endnote")
