"""What is cited is what is installed."""

import re
from importlib.metadata import metadata
from pathlib import Path

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError

ROOT = Path(__file__).parents[1]
NEWS = (ROOT / "NEWS.md").read_text("utf-8")


def test_all_say_the_same_version():
    installed = metadata("dpmodels")
    assert installed["Version"] == dp.__version__
    assert installed["Author"] in dp.citation()
    for form in ("text", "bibtex", "cff"):
        assert dp.__version__ in dp.citation(form)


def test_the_file_in_the_folder_is_the_one_that_is_told():
    assert (ROOT / "CITATION.cff").read_text("utf-8") == dp.citation("cff")


def test_the_news_begin_with_this_version():
    first = re.search(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", NEWS, flags=re.MULTILINE)
    assert first[1] == dp.__version__.removesuffix(".dev0")


def test_the_version_is_written_in_one_place():
    written = re.compile(
        rf"""^\s*(__version__|version)\b.*{re.escape(dp.__version__)}""", re.MULTILINE
    )
    names = [
        *ROOT.glob("*.cfg"),
        *ROOT.glob("*.toml"),
        *ROOT.glob("dpmodels/**/*.py"),
        *ROOT.glob("docs/*.py"),
    ]
    holding = [
        str(path.relative_to(ROOT)) for path in names if written.search(path.read_text("utf-8"))
    ]
    # The citation's example is checked when it runs.
    assert holding == ["dpmodels/citation.py", "dpmodels/version.py"]


def test_unknown_forms_are_refused():
    with pytest.raises(ArgumentError, match="format"):
        dp.citation("endnote")
