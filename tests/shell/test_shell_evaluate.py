"""The command compares algorithms, prints the table and writes one page."""

import sys

import numpy as np
import pytest

from dpmodels import source_tree
from dpmodels.__main__ import main

QUICK = ("--repeats", "2", "--scale", "100", "--eps", "1")


@pytest.mark.product
def test_the_page_and_the_table_are_written(tmp_path, capsys):
    np.savez(tmp_path / "public.npz", first=np.arange(1, 17), second=np.ones(16))
    words = ["evaluate", str(tmp_path / "a.html"), "--tables", str(tmp_path / "public.npz"), *QUICK]
    words += ["--algorithms", "geometric", "mwem", "--domain", "4", "16", "--error", "ranges"]
    assert main([*words, "--markdown", str(tmp_path / "a.md")]) == 0
    printed = capsys.readouterr().out
    assert "first" in printed
    assert "identity *" in printed
    assert "ranges: all ranges of cells" in " ".join(printed.split())
    assert "const study = {" in (tmp_path / "a.html").read_text("utf-8")
    assert "mwem" in (tmp_path / "a.md").read_text("utf-8")


@pytest.mark.product
def test_two_axes_have_algorithms_of_their_own(tmp_path, capsys):
    np.savez(tmp_path / "public.npz", map=np.ones((4, 4)))
    words = ["evaluate", str(tmp_path / "a.html"), "--tables", str(tmp_path / "public.npz"), *QUICK]
    assert main([*words, "--error", "random"]) == 0
    assert "quadtree" in capsys.readouterr().out


@pytest.mark.product
def test_all_that_fit_are_compared_where_none_are_named(tmp_path, capsys):
    np.savez(tmp_path / "public.npz", line=np.ones(4))
    words = ["evaluate", str(tmp_path / "a.html"), "--tables", str(tmp_path / "public.npz"), *QUICK]
    assert main(words) == 0
    pure = capsys.readouterr().out
    assert main([*words, "--delta", "1e-6", "--force"]) == 0
    out = capsys.readouterr().out
    assert "geometric" in pure
    assert "mwem" in pure
    assert "gaussian" not in pure
    assert "gaussian" in out


@pytest.mark.product
def test_without_the_source_tree_mechanisms_of_dp_hist_are_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "benchmarks.algorithms", raising=False)
    monkeypatch.setattr(source_tree, "ROOT", tmp_path)
    np.savez(tmp_path / "public.npz", line=np.ones(4))
    words = ["evaluate", str(tmp_path / "a.html"), "--tables", str(tmp_path / "public.npz"), *QUICK]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "geometric" in printed
    assert "mwem" not in printed
    assert main([*words, "--algorithms", "mwem", "--force"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "--algorithms mwem is not known" in message
    assert "part of the source tree, benchmarks/algorithms.py" in message


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (["--algorithms", "best"], "--algorithms best is not known"),
        (["--tables", "nowhere.npz"], "not a file of numpy arrays"),
        (["--tables", __file__], "not a file of numpy arrays"),
        (["--error", "rmse"], "error='rmse'"),
        (["--scale", "0"], "scale=0"),
        (["--delta", "2", "--algorithms", "gaussian"], "delta"),
    ],
)
def test_what_is_wrong_is_said_and_no_page_written(tmp_path, capsys, options, reported):
    assert main(["evaluate", str(tmp_path / "a.html"), "--repeats", "2", *options]) == 2
    assert reported in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_no_page_is_written_over_another(tmp_path, capsys):
    (tmp_path / "a.html").write_text("kept")
    assert main(["evaluate", str(tmp_path / "a.html"), *QUICK]) == 2
    assert "already" in capsys.readouterr().err
    assert (tmp_path / "a.html").read_text() == "kept"


@pytest.mark.guarding
@pytest.mark.parametrize("page", ["public.npz", "nowhere/a.html"])
def test_a_page_that_cannot_be_written_is_refused_before_anything_is_compared(
    tmp_path, capsys, page
):
    np.savez(tmp_path / "public.npz", line=np.ones(4))
    tables = str(tmp_path / "public.npz")
    content = (tmp_path / "public.npz").read_bytes()
    assert main(["evaluate", str(tmp_path / page), "--tables", tables, "--force", *QUICK]) == 2
    printed = capsys.readouterr()
    reason = "also read or written here" if page == "public.npz" else "folder does not exist"
    assert reason in " ".join(printed.err.split())
    assert printed.out == ""
    assert (tmp_path / "public.npz").read_bytes() == content
