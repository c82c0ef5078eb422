"""The command line does the main job, and the same on anybody's file."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.__main__ import main
from dpmodels.audit.every import EVERY
from dpmodels.audit.exhibits import CORRECT, EXHIBITS

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def job(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(0, 1, 400), "b": rng.normal(size=400)})
    table["g"] = np.where(rng.random(400) < 0.5, "x", "y")
    table.to_parquet(tmp_path / "data.parquet")
    table.to_csv(tmp_path / "data.csv", index=False)
    dp.codebook(a=(0, 1), b=(-3, 3), g=["x", "y"]).save(tmp_path / "cb.json")
    return tmp_path


def words(job, data="data.parquet", *more):
    return [
        "pca",
        "~ a + b + g",
        str(job / data),
        "--codebook",
        str(job / "cb.json"),
        "--eps",
        "1",
        "--delta",
        "1e-6",
        *more,
    ]


def labels(text):
    """Return the fixed words that lines of a report begin with."""
    starts = (re.match(r"[A-Za-z%][A-Za-z %()]*", line) for line in text.splitlines())
    return {start.group().strip() for start in starts if start}


def test_main_job_prints_the_readme_table(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    shown = README.read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    assert labels(printed) == labels(shown)
    assert "20,190 (public)" in printed
    assert "eps = 1, delta = 1e-06" in printed


def test_module_runs_in_a_fresh_process(tmp_path):
    command = [sys.executable, "-m", "dpmodels"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Importance of components" in run.stdout
    assert run.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mechanism", ["ppca", "shells"])
def test_other_mechanisms_and_unit_rows(job, mechanism, capsys):
    page, saved = job / "fit.html", job / "fit.nc"
    more = ["--mechanism", mechanism, "--row-norm", "unit", "--ncomp", "1"]
    assert main(words(job, "data.parquet", *more, "--html", str(page), "--save", str(saved))) == 0
    printed = capsys.readouterr().out
    assert f"{mechanism} (" in printed
    assert "each row by its own" in printed
    assert "<img" in page.read_text(encoding="utf-8")
    assert str(dp.load(saved).summary()).strip() == printed.strip()


@pytest.mark.parametrize("data", ["data.parquet", "data.csv"])
def test_pca_of_a_file(job, data, capsys):
    assert main(words(job, data)) == 0
    out, err = capsys.readouterr()
    assert "~ a + b + g" in out
    assert "400 (public)" in out
    assert err == ""


def test_all_outputs_are_written(job, capsys):
    targets = {name: job / f"out.{name}" for name in ("text", "html", "latex", "markdown", "save")}
    extra = [word for name, path in targets.items() for word in (f"--{name}", str(path))]
    assert main(words(job, "data.parquet", *extra)) == 0
    printed = capsys.readouterr().out
    assert targets["text"].read_text() == printed
    page = targets["html"].read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("data:image/png;base64,") == 2
    assert "\\toprule" in targets["latex"].read_text()
    assert "|" in targets["markdown"].read_text()
    assert str(dp.load(targets["save"]).summary()) + "\n" == printed


def test_options_reach_the_fit(job, capsys):
    extra = ("--no-center", "--scale", "none", "--ncomp", "2", "--adjacency", "add-remove")
    assert main(words(job, "data.parquet", *extra)) == 0
    out = capsys.readouterr().out
    assert "not centred, scale = none" in out
    assert "add or remove one row" in out
    assert "PC3" not in out


def test_rho_instead_of_eps(job, capsys):
    given = words(job)
    given[given.index("--eps") : given.index("--eps") + 4] = ["--rho", "0.5"]
    assert main(given) == 0
    assert "rho = 0.5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--eps", "-1"), "eps"),
        (("--delta", "2"), "delta"),
        (("--adjacency", "swap"), "adjacency"),
        (("--mechanism", "magic"), "mechanism"),
        (("--scale", "wide"), "scale"),
        (("--ncomp", "9"), "ncomp"),
        (("--html", "nowhere/report.html"), "--html"),
        (("--codebook", "missing.json"), "missing.json"),
    ],
)
def test_mistakes_end_in_one_line_and_status_2(job, change, said, capsys, monkeypatch):
    monkeypatch.setattr(
        "dpmodels.mechanisms.covariance.gauss.moments", lambda *_, **__: pytest.fail("rows read")
    )
    assert main([*words(job), *change]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert len(err.splitlines()) == 1


def test_codebook_mistake_names_the_variable(job, capsys):
    (job / "cb.json").write_text(json.dumps({"a": {"range": [1, 0]}}))
    assert main(words(job)) == 2
    assert "'a'" in capsys.readouterr().err


@pytest.fixture
def few_audits(monkeypatch):
    """Audit one verb; note how it was asked."""
    from dpmodels.audit import rollcall

    own, asked = rollcall.call_the_roll, []

    def few(*, full):
        asked.append(full)
        return own([line for line in EVERY if line.verb.func is dp.dp_table])

    monkeypatch.setattr(rollcall, "call_the_roll", few)
    return asked


def test_audit_prints_and_writes_a_table(few_audits, tmp_path, capsys):
    page = tmp_path / "audit.html"
    assert main(["audit", "--html", str(page)]) == 0
    assert main(["audit", "--all"]) == 0
    assert few_audits == [False, True]
    assert "dp_table geometric (eps)" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.usefixtures("few_audits")
def test_audit_refuses_before_it_runs(capsys):
    assert main(["audit", "--text", "nowhere/table.txt"]) == 2
    assert "--text" in capsys.readouterr().err


def test_audit_of_exhibits_ends_in_status_1_if_one_is_not_flagged(monkeypatch, capsys):
    few = {"exact_count": EXHIBITS["exact_count"]}
    monkeypatch.setattr("dpmodels.audit.rollcall.EXHIBITS", few)
    assert main(["audit", "--exhibits"]) == 0
    few["exact_count"] = CORRECT["exact_count"]
    assert main(["audit", "--exhibits"]) == 1
    assert "not as expected" in capsys.readouterr().out


def test_help_explains_itself(capsys):
    for given in (["--help"], ["pca", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(given)
        assert stop.value.code == 0
        shown = capsys.readouterr().out
        assert "--codebook" in shown
        assert '"levels"' in shown
