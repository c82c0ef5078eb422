"""The command line does the main job, and the same on anybody's file."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from exhibits import CORRECT, EXHIBITS

import dpmodels as dp
from dpmodels.__main__ import main
from dpmodels.audit.registry import REGISTRY

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def job(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(0, 1, 400), "b": rng.normal(size=400)})
    table["g"] = np.where(rng.random(400) < 0.5, "x", "y")
    table.to_parquet(tmp_path / "data.parquet")
    table.to_csv(tmp_path / "data.csv", index=False)
    dp.codebook(a=(0, 1), b=(-3, 3), g=["x", "y"]).save(tmp_path / "cb.json")
    return tmp_path


def words(job, data="data.parquet", *options):
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
        *options,
    ]


def labels(text):
    """Return the fixed words that lines of a report begin with."""
    starts = (re.match(r"[A-Za-z%][A-Za-z %()]*", line) for line in text.splitlines())
    return {start.group().strip() for start in starts if start}


@pytest.mark.expensive
def test_main_job_prints_the_readme_table(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    options = README.read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    # The noise decides which notes there are, and so which four are printed below the last rule.
    (table, notes), (shown_table, shown_notes) = (
        text.rstrip().rsplit("=" * 89, 1) for text in (printed, options)
    )
    assert labels(table) == labels(shown_table)
    for text in (notes, shown_notes):
        assert 'summary(notes="all") shows' in " ".join(text.split())
    assert "20,190 (public)" in printed
    assert "eps = 1, delta = 1e-06" in printed


@pytest.mark.product
def test_module_runs_in_a_fresh_process(tmp_path):
    command = [sys.executable, "-m", "dpmodels"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Importance of components" in run.stdout
    assert run.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.product
@pytest.mark.parametrize("mechanism", ["ppca", "shells"])
def test_other_mechanisms_and_unit_rows(job, mechanism, capsys):
    page, saved = job / "fit.html", job / "fit.nc"
    options = ["--mechanism", mechanism, "--row-norm", "unit", "--ncomp", "1"]
    assert (
        main(words(job, "data.parquet", *options, "--html", str(page), "--save", str(saved))) == 0
    )
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


@pytest.mark.product
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
    arguments = words(job)
    arguments[arguments.index("--eps") : arguments.index("--eps") + 4] = ["--rho", "0.5"]
    assert main(arguments) == 0
    assert "rho = 0.5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
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
def test_mistakes_end_in_one_line_and_status_2(job, change, message, capsys, monkeypatch):
    monkeypatch.setattr(
        "dpmodels.mechanisms.covariance.gauss.moments", lambda *_, **__: pytest.fail("rows read")
    )
    assert main([*words(job), *change]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


def test_codebook_mistake_names_the_variable(job, capsys):
    (job / "cb.json").write_text(json.dumps({"a": {"range": [1, 0]}}))
    assert main(words(job)) == 2
    assert "'a'" in capsys.readouterr().err


@pytest.fixture
def few_audits(monkeypatch):
    """Audit one verb; note how it was asked."""
    from dpmodels.audit import registry

    original, calls = registry.run_all, []

    def few(*, full):
        calls.append(full)
        return original([line for line in REGISTRY if line.verb.func is dp.dp_table])

    monkeypatch.setattr(registry, "run_all", few)
    return calls


@pytest.mark.product
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


@pytest.mark.product
def test_audit_of_exhibits_ends_in_status_1_if_one_is_not_flagged(monkeypatch, capsys):
    few = {"exact_count": EXHIBITS["exact_count"]}
    monkeypatch.setattr("exhibits.EXHIBITS", few)
    # At 95 %: the seed is fixed, so that each outcome repeats.
    with dp.simulation(seed=3):
        assert main(["audit", "--exhibits"]) == 0
        few["exact_count"] = CORRECT["exact_count"]
        assert main(["audit", "--exhibits"]) == 1
    assert "not as expected" in capsys.readouterr().out


SITES = "ABC"


@pytest.fixture
def three(job):
    """Three sites with a third of the rows each, their keys made by command."""
    table = pd.read_csv(job / "data.csv")
    for place, site in enumerate(SITES):
        table[place::3].to_csv(job / f"{site}.csv", index=False)
        assert main(["site-key", site, "--out", str(job / f"{site}.key")]) == 0
        dp.Ledger.open(job / f"{site}.ledger", eps=1.0, delta=1e-6, new=True)
    return job


def site_words(job, site, protocol, *options, formula="~ a + b + g"):
    arguments = ["site", formula, str(job / f"{site}.csv"), "--out", str(job / f"{site}.json")]
    arguments += ["--site", site, "--session", "trial 7", "--protocol", protocol]
    arguments += ["--codebook", str(job / "cb.json"), "--eps", "1", "--delta", "1e-6"]
    if protocol in ("cape", "secure_sum"):
        arguments += ["--key", str(job / f"{site}.key")]
        arguments += ["--cards", *(str(job / f"{site}.key.card") for site in SITES)]
        arguments += ["--ledger", str(job / f"{site}.ledger")]
    return [*arguments, *options]


def combine_words(job, *options):
    return ["combine", *(str(job / f"{site}.json") for site in SITES), *options]


@pytest.mark.product
@pytest.mark.parametrize(
    ("protocol", "words_of_it"),
    [("full", ()), ("dpdispca", ("--R", "3")), ("cape", ("--colluders", "0")), ("secure_sum", ())],
)
def test_three_sites_combine_by_files(three, protocol, words_of_it, capsys):
    for site in SITES:
        arguments = site_words(three, site, protocol, "--ncomp", "2", *words_of_it)
        assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert out.count(f"protocol {protocol}; send it") == 3
    page, saved = three / "fit.html", three / "fit.nc"
    assert main(combine_words(three, "--html", str(page), "--save", str(saved))) == 0
    out, error = capsys.readouterr()
    assert f"3, protocol {protocol}" in out
    assert "400 (public)" in out
    assert "no protocol can detect" in " ".join(out.split())
    assert err == error == ""
    assert "<img" in page.read_text(encoding="utf-8")
    assert dp.load(saved).loadings.sizes["component"] == 2
    assert str(dp.load(saved).summary()) + "\n" == out
    for name, target in (("html", page), ("save", saved)):
        assert main(combine_words(three, f"--{name}", str(target))) == 2
        assert "already exists" in capsys.readouterr().err


@pytest.mark.product
@pytest.mark.parametrize(
    ("verb", "formula", "options", "title"),
    [
        ("lm", "b ~ a + g", ["--row-norm", "1"], "linear regression"),
        ("lm", "b ~ 1", [], "linear regression"),
        ("cov", "~ a + b", ["--no-center", "--scale", "none"], "second moment"),
        ("cov", "~ a + b", ["--denoise", "none"], "covariance"),
        ("mean", "b ~ g", [], "means"),
        ("table", "~ g", ["--adjacency", "add-remove"], "counts"),
        ("hist", "~ a", ["--breaks", "0,0.3,1"], "histogram"),
        ("hist", "~ a", ["--breaks", "4"], "histogram"),
    ],
)
def test_other_verbs_of_sites(three, verb, formula, options, title, capsys):
    for site in SITES:
        arguments = site_words(three, site, "full", "--verb", verb, *options, formula=formula)
        assert main(arguments) == 0
    page = three / "fit.html"
    assert main(combine_words(three, "--html", str(page))) == 0
    out = capsys.readouterr().out
    assert title in out
    assert "3, protocol full" in out
    assert page.is_file()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--protocol", "trust_me"], "expected one of 'full'"),
        (["--protocol", "pooled"], "expected one of 'full'"),
        (["--protocol", "full"], "are not for protocol='full'"),
        (["--colluders", "3"], "has to be honest"),
        (["--R", "2"], "--R is not an option of protocol 'secure_sum'"),
        (["--verb", "svm"], "verb='svm'"),
        (["--verb", "table", "--ncomp", "1"], "ncomp= is not a parameter"),
        (["--key", "missing.key"], "missing.key"),
        (["--cards", "A.csv"], "A.csv"),
        (["--out", "nowhere/a.json"], "its folder does not exist"),
        (["--session", ""], "session"),
        (["--site", "B"], "the key of another site"),
        (["--eps", "-1"], "eps"),
        (["--delta", "0"], "delta"),
    ],
)
def test_mistakes_of_a_site_are_one_line_and_keep_the_key(three, change, message, capsys):
    capsys.readouterr()
    assert main([*site_words(three, "A", "secure_sum"), *change]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (three / "A.json").exists()
    assert "private" in (three / "A.key").read_text(encoding="utf-8")


def test_a_key_needs_a_ledger(three, capsys):
    capsys.readouterr()
    arguments = site_words(three, "A", "secure_sum")
    place = arguments.index("--ledger")
    assert main([*arguments[:place], *arguments[place + 2 :]]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "needs ledger=, a file" in err
    assert len(err.splitlines()) == 1
    assert not (three / "A.json").exists()
    assert "private" in (three / "A.key").read_text(encoding="utf-8")


@pytest.mark.expensive
def test_nothing_that_was_written_is_written_over(three, capsys):
    files = [three / "A.key", three / "A.key.card", three / "A.json"]
    assert main(site_words(three, "A", "secure_sum")) == 0
    before = [file.read_bytes() for file in files]
    assert main(site_words(three, "A", "secure_sum")) == 2
    assert main(["site-key", "A", "--out", str(files[0])]) == 2
    files[0].rename(three / "old.key")
    assert main(["site-key", "A", "--out", str(files[0])]) == 2
    assert not files[0].exists()
    (three / "old.key").rename(files[0])
    assert main(["site-key", "A", "--out", str(three / "nowhere" / "A.key")]) == 2
    errors = capsys.readouterr().err
    assert errors.count("already exists") == 3
    assert "its folder does not exist" in errors
    assert [file.read_bytes() for file in files] == before


@pytest.mark.product
def test_combine_names_what_does_not_fit(three, capsys):
    for site in SITES:
        formula = "~ a + b" if site == "B" else "~ a + b + g"
        assert main(site_words(three, site, "full", formula=formula)) == 0
    capsys.readouterr()
    assert main(combine_words(three)) == 2
    assert main(combine_words(three, "--html", "nowhere/report.html")) == 2
    assert main(["combine", *[str(three / "A.json")] * 2]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert "formula is ~ a + b and not ~ a + b + g" in errors[0]
    assert "--html" in errors[1]
    assert "both of site 'A'" in errors[2]


def test_help_explains_itself(capsys):
    commands = {
        "pca": '"levels"',
        "site-key": "FILE.card",
        "site": "secure_sum",
        "combine": "one of each site",
    }
    for command, message in {"--help": '"levels"', **commands}.items():
        with pytest.raises(SystemExit) as stop:
            main([command] if command == "--help" else [command, "--help"])
        assert stop.value.code == 0
        out = capsys.readouterr().out
        assert "--codebook" in out
        assert message in out
