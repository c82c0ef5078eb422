"""A study in a file: checked before the first charge, released once, written as a whole."""

import json
import tomllib

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.__main__ import main
from dpmodels.shell import study_run
from dpmodels.shell.study import read_study
from dpmodels.shell.study_run import exclusive_folder

STUDY = {"title": "A <b>study</b>", "data": "data.csv", "codebook": "cb.json", "out": "report"}
STUDY |= {"author": "A. Analyst", "eps": 2.0, "delta": 1e-6}
MEANS = {"name": "means", "verb": "mean", "formula": "a ~ g", "eps": 0.5, "plots": False}
MODEL = {"name": "model", "verb": "lm", "formula": "a ~ b", "vcov": "iid", "plots": False}


def toml(sections):
    """Sections as TOML, whose values are spelt as JSON's."""
    lines = []
    for name, section in sections.items():
        for value in section if isinstance(section, list) else [section]:
            lines.append(f"[[{name}]]" if isinstance(section, list) else f"[{name}]")
            lines += [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in value.items()]
    return "\n".join(lines)


@pytest.fixture
def job(tmp_path, monkeypatch, capsys):
    """Write and run a study of fifty rows; return status, output and errors."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.random(50), "b": rng.random(50), "g": ["<i>x", "y"] * 25})
    rows.to_csv(tmp_path / "data.csv", index=False)
    dp.codebook(a=(0, 1), b=(0, 1), g=["<i>x", "y"]).save(tmp_path / "cb.json")

    def run(*words, command="run", text=None, study=STUDY, release=(MEANS, MODEL), **more):
        options = {"study": study, "release": list(release), "disclosure": {"pictures": False}}
        written = toml({**options, **more})
        (tmp_path / "study.toml").write_text(written if text is None else text)
        status = main([command, str(tmp_path / "study.toml"), *words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    run.folder = tmp_path
    return run


def ledger(job):
    return dp.Ledger.open(job.folder / "report" / "study.ledger")


@pytest.mark.product
def test_a_study_is_priced_made_and_written(job):
    before = sorted(path.name for path in job.folder.iterdir())
    status, priced, _ = job(command="plan")
    assert (status, "2, 2 fit" in priced) == (0, True)
    assert sorted(path.name for path in job.folder.iterdir()) == sorted(["study.toml", *before])
    tables = [{"name": "both", "of": ["means", "model"], "digits": 3}]
    message = {"purpose": "A test", "pictures": False}
    releases = [{**MEANS, "plots": True}, MODEL]
    status, printed, error = job(release=releases, table=tables, disclosure=message)
    assert (status, error) == (0, "")
    out = job.folder / "report"
    for name in ("means.nc", "means.txt", "means.csv", "model.json", "both.md", "disclosure.md"):
        assert (out / name).is_file(), name
    assert [path.name for path in out.glob("*.png")] == ["means-1.png"]
    assert len(ledger(job).entries) == 2
    assert ledger(job).spent.amount == pytest.approx(2.0, rel=1e-6)
    stored = json.loads((out / "model.json").read_text())
    assert stored["digest"] == ledger(job).register()["digest"].iloc[1]
    page = (out / "index.html").read_text()
    assert "A &lt;b&gt;study&lt;/b&gt;" in page
    assert "&lt;i&gt;x" in page
    assert not any(raw in page for raw in ("<b>study", "<i>x"))
    assert 'href="disclosure.html"' in page
    parts = [page.index(f'<section id="{name}">') for name in ("means", "guarantee", "ledger")]
    assert parts == sorted(parts)
    assert "Tables are neighbours if one row is replaced by any other." in page
    disclosure = (out / "disclosure.md").read_text()
    assert "A test" in disclosure
    assert "A. Analyst" in disclosure
    assert "2 charges" in disclosure
    assert "index.html: all tables" in printed


@pytest.mark.product
def test_the_plan_is_printed_before_the_first_charge_unless_silenced(job, monkeypatch):
    events = []
    printed, charged = study_run.tell, dp.Ledger.charge
    monkeypatch.setattr(study_run, "tell", lambda text: (events.append(str(text)), printed(text)))
    monkeypatch.setattr(
        dp.Ledger, "charge", lambda *a, **w: (events.append("charge"), charged(*a, **w))[1]
    )
    assert job(release=[MEANS])[0] == 0
    assert "Calls planned, nothing spent" in events[0]
    assert events.index("charge") > 0
    events.clear()
    assert job("--quiet", "--again", "means", release=[MEANS])[0] == 0
    assert events[0] == "charge"
    assert not any("Calls planned" in text for text in events)


def test_a_release_to_pay_for_again_is_one_of_the_study(job):
    status, _, error = job("--again", "meams", release=[MEANS])
    assert status == 2
    assert "--again meams (did you mean 'means'?): expected one of means" in error
    assert not (job.folder / "report").exists()


@pytest.mark.product
def test_a_study_run_again_spends_nothing_and_asks_what_is_new(job):
    assert job(release=[MEANS])[0] == 0
    first = (job.folder / "report" / "means.txt").read_bytes()
    status, printed, _ = job(release=[MEANS])
    assert (status, "means: already released" in printed) == (0, True)
    assert job(release=[MEANS, MODEL])[0] == 0
    assert [entry.label for entry in ledger(job).entries] == ["dp_mean a ~ g", "dp_lm a ~ b"]
    assert (job.folder / "report" / "means.txt").read_bytes() == first
    status, _, error = job(release=[{**MEANS, "eps": 0.4}, MODEL])
    assert (status, "--again means" in error) == (2, True)
    assert len(ledger(job).entries) == 2


@pytest.mark.product
def test_what_was_paid_for_and_is_not_here_is_asked_again_only_by_name(job):
    assert job(release=[MEANS])[0] == 0
    out = job.folder / "report"
    saved = (out / "means.nc").read_bytes()
    (out / "means.nc").unlink()
    assert "--again means" in job(release=[MEANS])[2]
    (out / "study.json").unlink()
    status, _, error = job(release=[{**MEANS, "name": "other"}])
    assert (status, "the ledger has charge 1 for the same verb" in error) == (2, True)
    assert len(ledger(job).entries) == 1
    for file in out.iterdir():
        if file.name != "study.ledger":
            file.unlink()
    assert job("--again", "means", release=[MEANS])[0] == 0
    assert len(ledger(job).entries) == 2
    (out / "means.nc").write_bytes(saved)
    assert "is not in the ledger" in job(release=[MEANS])[2]
    dp.codebook(a=(0, 2), b=(0, 1), g=["<i>x", "y"]).save(job.folder / "cb.json", overwrite=True)
    assert "another codebook" in job(release=[MEANS])[2]


def changed(section, **words):
    options = {"study": dict(STUDY), "release": [dict(MEANS), dict(MODEL)]}
    target = options["study"] if section == "study" else options["release"][1]
    target.update(words)
    return {name: options[name] for name in ("study", "release")}


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("study_file", "reported"),
    [
        (changed("study", epss=1.0), "[study]: 'epss' is not known (did you mean 'eps'?)"),
        (changed("study", out=" "), '[study] out = "": write a path'),
        (
            changed("release", vcv="HC"),
            "release 'model': 'vcv' is not known (did you mean 'vcov'?)",
        ),
        (
            changed("release", verb="lmm"),
            "release 'model': call.lmm (did you mean 'lm' or 'glm'?): expected a verb, one of",
        ),
        (changed("release", vcov="HD"), "release 'model': vcov='HD': expected"),
        (changed("release", formula="a ~ zz"), "'zz'"),
        (
            {"release": [{**MEANS, "verb": "series"}]},
            "release 'means' lacks 'time': write time = \"...\"",
        ),
        (changed("release", formula=3), "release 'model': formula: expected a text"),
        (changed("release", eps=1.9), "the budget does not pay for model"),
        (changed("release", eps=1.0, share=0.2), "write one of eps, share and rho"),
        (changed("release", name="../up"), "expected a file name of letters, digits"),
        (changed("release", name="Means"), "name = 'Means' occurs twice"),
        (changed("release", name="index"), "other than index"),
        (changed("release", plots=1), "plots: expected true or false"),
        (changed("study", data="none.csv"), "none.csv"),
        (changed("study", eps=0), "eps"),
        (changed("study", person=True), "write the column"),
        (changed("study", out="no/where"), "cannot be created"),
        (changed("study", out="data.csv"), "it is a file, or write the name of another folder"),
        (changed("study", ledger="data.csv"), "not a ledger"),
        (changed("study", ledger="no/where.ledger"), "or write another ledger = in [study]"),
        (changed("study", rho=0.1), "[study] rho is a whole budget: leave out eps and delta"),
        (
            {"study": {name: STUDY[name] for name in ("data", "codebook", "out")}},
            "[study] has no budget: write eps = 1.0, or rho = 0.1",
        ),
        (
            {"study": {name: value for name, value in STUDY.items() if name != "codebook"}},
            'never from the rows. Write codebook = "cb.json"',
        ),
        ({"release": [{**MEANS, "rho": "x"}]}, "release 'means': rho: expected a number"),
        ({"table": [{"name": "t", "of": ["modle"]}]}, "did you mean 'model'?"),
        ({"table": [{"name": "t", "digts": 3}]}, "did you mean 'digits'?"),
        ({"table": [{"name": "model"}]}, "occurs twice"),
        ({"table": [{"name": "t", "level": 7}]}, "table 't': level=7: expected a number"),
        ({"table": [{"name": "t", "of": []}]}, "table 't': of: names no release"),
        (
            {"table": [{"name": "t"}], "release": [{**MEANS, "verb": "hist", "formula": "~ a"}]},
            "table 't': of: the result of release 'means' has no column in a table",
        ),
        ({"disclosure": {"title": 1}}, "[disclosure]: title=1: expected a text"),
        ({"disclosure": {"title": " "}}, "[disclosure]: title is empty"),
        (changed("release", verb="__class__"), "release 'model': call.__class__: expected a verb"),
        ({"disclosure": {"titel": "x"}}, "[disclosure]: 'titel' is not known (did you mean"),
        ({"releases": [MEANS]}, "'releases' is not known (did you mean 'release'?)"),
        ({"text": "[study\n"}, "is not a study in TOML"),
        ({"text": "[study]\ndata = 'a'\nout = 'b'"}, "has no [[release]]"),
    ],
)
def test_mistakes_are_told_before_the_first_charge(job, study_file, reported, monkeypatch):
    monkeypatch.setattr(dp.session, "make", lambda *_: pytest.fail("charged"))
    status, _, error = job(**study_file)
    assert (status, reported in error) == (2, True), error
    assert len(error.splitlines()) == 1
    assert not (job.folder / "report" / "study.ledger").exists()
    assert "Traceback" not in error


def test_files_of_another_hand_and_folders_that_take_none_are_told_before_the_charge(
    job, monkeypatch
):
    out = job.folder / "report"
    out.mkdir()
    (out / "model.txt").write_text("mine")
    assert "already exists" in job()[2]
    assert (out / "model.txt").read_text() == "mine"
    (out / "model.txt").unlink()
    (out / "model.csv").write_bytes((job.folder / "data.csv").read_bytes())
    assert "also read or written" in job(study={**STUDY, "data": "report/model.csv"})[2]
    (out / "model.csv").unlink()

    def read_only(*arguments, **options):
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr("dpmodels.atomic_files.os.open", read_only)
        status, _, error = job()
    assert (status, "takes no files" in error) == (2, True)
    assert not (out / "study.ledger").exists()


def test_a_ledger_that_somebody_else_charges_stops_a_study(job, monkeypatch):
    original = dp.session.make

    def two(session, call):
        fit = original(session, call)
        session.ledger.charge([], adjacency="replace")
        return fit

    monkeypatch.setattr(dp.session, "make", two)
    status, _, error = job()
    assert (status, "was charged by another process" in error) == (2, True)
    assert [entry.label for entry in ledger(job).entries] == ["dp_mean a ~ g", ""]


@pytest.mark.product
def test_what_is_charged_between_what_was_judged_and_what_is_asked_stops_a_study(job, monkeypatch):
    assert job(release=[MEANS])[0] == 0
    original = study_run.price_releases

    def meanwhile(*arguments):
        ledger(job).charge([], adjacency="replace")
        return original(*arguments)

    monkeypatch.setattr(study_run, "price_releases", meanwhile)
    status, _, error = job()
    assert (status, "was charged by another process" in error) == (2, True)
    assert len(ledger(job).entries) == 2


@pytest.mark.product
def test_two_processes_make_no_study_in_one_folder(job):
    (job.folder / "report").mkdir()
    with exclusive_folder(job.folder / "report"):
        status, _, error = job(release=[MEANS])
    assert (status, "another process runs a study" in error) == (2, True)
    assert not list((job.folder / "report").iterdir())
    assert job(release=[MEANS])[0] == 0


@pytest.mark.product
def test_shares_and_words_of_toml_are_those_of_the_verbs(job):
    bins = {"name": "bins", "verb": "hist", "formula": "~ a", "breaks": [0, 0.5, 1]}
    axes = {"name": "axes", "verb": "pca", "formula": "~ a + b", "scale": "none", "share": "1/2"}
    assert job(release=[{**axes, "plots": False}, {**bins, "plots": False}])[0] == 0
    out = job.folder / "report"
    assert dp.load(out / "axes.nc").call.scale is None
    assert dp.load(out / "bins.nc").breaks.tolist() == [0, 0.5, 1]


def test_the_example_of_the_help_is_a_study(capsys):
    from dpmodels.shell.plan import EXAMPLE

    lines = EXAMPLE.split("study.toml:\n")[1].split("  dpmodels plan")[0].splitlines()
    stored = tomllib.loads("\n".join(line.strip() for line in lines))
    assert list(stored) == ["study", "release", "table", "disclosure"]


@pytest.mark.product
def test_errors_are_foretold_of_guessed_rows(job):
    status, printed, _ = job("--n", "2000", command="plan", release=[MEANS])
    assert status == 0
    assert "2,000" in printed


@pytest.mark.product
def test_a_study_that_says_how_many_rows_there_are_is_planned_with_them(job):
    study = {**STUDY, "n": 2_000}
    status, printed, _ = job(command="plan", release=[MEANS], study=study)
    assert status == 0
    assert printed.count("identified") >= 2
    assert "2,000" in printed
    status, printed, _ = job(release=[MEANS], study=study)
    assert status == 0
    assert "identified" in printed
    status, _, error = job(command="plan", release=[MEANS], study={**STUDY, "n": "many"})
    assert status == 2
    assert "[study] n" in error


TOTALS = [({"eps": 2.0}, "0.500"), ({"rho": 0.1}, "0.0250"), ({"eps": 2.0, "delta": 1e-6}, "0.82")]


@pytest.mark.product
@pytest.mark.parametrize(("total", "amount"), TOTALS)
def test_a_share_is_planned_with_as_the_amount_that_it_comes_to(job, total, amount):
    study = {key: value for key, value in STUDY.items() if key not in ("eps", "delta")}
    means = {"name": "means", "verb": "mean", "formula": "a ~ g", "share": "1/4", "plots": False}
    job_of = {"release": [means, {**means, "name": "rest"}], "study": {**study, **total}}
    status, printed, error = job("--n", "2000", command="plan", **job_of)
    assert (status, error) == (0, "")
    assert printed.count(amount) >= 2  # of the call alone, and of the budget's division
    assert job(**job_of)[0] == 0
    assert job("--n", "2000", command="plan", **job_of)[0] == 0


@pytest.mark.product
def test_the_rows_of_a_parquet_file_are_planned_with_before_the_first_charge(job):
    pd.read_csv(job.folder / "data.csv").to_parquet(job.folder / "data.parquet")
    status, printed, _ = job(release=[MEANS], study={**STUDY, "data": "data.parquet"})
    assert status == 0
    assert printed.index("identified") < printed.index("means:")
    private = {**STUDY, "data": "data.parquet", "out": "other", "adjacency": "add-remove"}
    status, printed, _ = job(release=[MEANS], study=private)
    assert status == 0
    assert "identified" not in printed.split("means:")[0]


@pytest.mark.product
def test_none_and_dates_are_read_where_a_parameter_takes_them(job):
    pca = {"name": "pca", "verb": "pca", "formula": "~ a + b", "scale": "none", "ncomp": 1}
    job(command="plan", release=[pca, {**MODEL, "subset": "a > 0"}])
    components, model = read_study(str(job.folder / "study.toml")).releases
    assert components.call.options["scale"] is None
    assert components.call.options["ncomp"] == 1
    assert model.call.options == {"vcov": "iid", "subset": "a > 0"}


def test_a_misspelled_key_is_named_before_the_one_that_is_missing(job):
    misspelled = {"fromula" if key == "formula" else key: value for key, value in MEANS.items()}
    status, _, error = job(command="plan", release=[misspelled])
    assert status == 2
    assert "'fromula' is not known" in error
    assert "did you mean 'formula'" in error


def draft_of(job, unknown):
    """Put a draft in place of the codebook, whose `unknown` variable has no declaration."""
    declared = json.loads((job.folder / "cb.json").read_text())
    (job.folder / "cb.json").write_text(json.dumps({**declared, unknown: {"type": "?"}}))


def test_a_study_may_leave_open_what_no_release_names(job):
    draft_of(job, "town")
    status, printed, error = job(command="plan")
    assert (status, error) == (0, "")
    assert "nothing spent" in printed


@pytest.mark.parametrize("formula", ["a ~ town", "a ~ ."])
def test_a_study_needs_the_bounds_of_what_it_names(job, formula):
    draft_of(job, "town")
    status, _, error = job(command="plan", release=[{**MODEL, "formula": formula}])
    assert status == 2
    assert "does not know the bounds or levels of 'town'" in error
    assert 'in place of "?"' in error


def test_a_subset_needs_its_bounds_too(job):
    draft_of(job, "town")
    status, _, error = job(command="plan", study={**STUDY, "subset": "town > 3"})
    assert status == 2
    assert "does not know the bounds or levels of 'town'" in error


def test_files_with_a_mark_of_their_byte_order_are_read(job):
    for path in (job.folder / "cb.json", job.folder / "study.toml"):
        job(command="plan")
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert list(dp.Codebook.load(job.folder / "cb.json")) == ["a", "b", "g"]
    assert read_study(str(job.folder / "study.toml")).title == STUDY["title"]
