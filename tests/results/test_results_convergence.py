"""Guarantees that hold in the limit of a Markov chain say so wherever they are printed."""

import json

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.shell.outputs import as_json

CAVEAT = "if its Markov chain has converged, which is not proved"
NAMES = tuple(f"x{i}" for i in range(5))
BOOK = dp.codebook.uniform(NAMES, (-1, 1))


def rows():
    rng = np.random.default_rng(0)
    return {name: rng.uniform(-1, 1, 2000) for name in NAMES}


def one_line(text):
    return " ".join(str(text).split())


def fitted(ledger=None, **words):
    options = {"ncomp": 2, "mechanism": "ppca", "eps": 20.0, **words}
    return dp.dp_pca("~ .", rows(), codebook=BOOK, ledger=ledger, **options)


@pytest.fixture(scope="module")
def study():
    ledger = dp.Ledger(eps=50.0)
    return fitted(ledger), ledger


def of_fit(fit, ledger):
    """All that prints the guarantee of a fit."""
    summary = fit.summary()
    return {
        "repr": repr(fit),
        "text": summary.as_text(),
        "html": summary.as_html(),
        "latex": summary.as_latex(),
        "markdown": summary.as_markdown(),
        "reading line": fit.summary(reading=True).as_text().split("Reading:")[1],
        "reading": dp.reading(fit).summary().as_markdown(),
        "etable": dp.etable(fit),
        "glance": fit.glance().to_csv(),
        "dataset": fit.to_xarray().attrs["Guarantee"],
        "shell": json.loads(as_json(fit))["guarantee"],
        "disclosure": dp.disclosure(fit).as_markdown().split("Methods")[0],
    }


def of_ledger(fit, ledger):
    """All that prints the guarantee of a ledger that was charged for it."""
    return {
        "repr": repr(ledger),
        "report": dp.ledger_report(ledger),
        "reading": dp.reading(ledger).summary().as_markdown(),
        "etable": dp.etable(fit, ledger=ledger),
        "disclosure": dp.disclosure(ledger).as_markdown(),
    }


@pytest.mark.parametrize("saved", [False, True])
def test_each_print_of_a_fit_says_what_its_guarantee_rests_on(study, saved, tmp_path):
    fit, ledger = study
    if saved:
        fit.save(tmp_path / "fit.nc")
        fit = dp.load(tmp_path / "fit.nc")
    printed = of_fit(fit, ledger)
    assert [name for name, text in printed.items() if CAVEAT not in one_line(text)] == []


def test_each_print_of_a_ledger_says_what_its_total_rests_on(study):
    printed = of_ledger(*study)
    short = CAVEAT.removeprefix("if ")
    assert [name for name, text in printed.items() if short not in one_line(text)] == []


def test_a_disclosure_report_says_it_wherever_it_states_the_guarantee(study):
    """In short, what is guaranteed, the release, and the paragraph for a methods section."""
    text = one_line(dp.disclosure(study[0]).as_markdown())
    assert text.count(CAVEAT.removeprefix("if ")) >= 4


@pytest.mark.product
def test_a_session_says_it_and_exact_draws_do_not():
    study = dp.session(rows(), BOOK, eps=100.0)
    study.pca("~ .", ncomp=2, mechanism="ppca", eps=20.0)
    assert CAVEAT in one_line(repr(study))
    sequential = dp.mechanisms.PPCA(sampler="sequential")
    for words in ({"ncomp": 1}, {"ncomp": 4}, {"mechanism": sequential}):
        fit = fitted(**words)
        printed = of_fit(fit, None)
        # A disclosure report names the mechanism alone where a ledger has no more.
        assert [name for name, text in printed.items() if CAVEAT in one_line(text)] == []
    assert fit.glance()["guarantee_holds"].tolist() == ["always"]
