"""Every result has a picture with a caption, or says why it has none."""

import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from verbs import forms

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.plots.style import alt_text
from dpmodels.results.base import Printed

BOOK = dp.codebook(age=(0, 100), sex=["F", "M"], area=["n", "s", "w"], kept=["no", "yes"])
RNG = np.random.default_rng(1)
ROWS = {
    "age": RNG.integers(18, 90, 3_000),
    "sex": RNG.choice(["F", "M"], 3_000),
    "area": RNG.choice(["n", "s"], 3_000),
    "kept": RNG.choice(["no", "yes"], 3_000),
}
WORDS = {"codebook": BOOK, "eps": 2.0}


def ax():
    return Figure().subplots()


def segments(axes, place):
    return np.array([segment[:, 0] for segment in axes.collections[place].get_segments()])


@pytest.mark.parametrize(("form", "title"), [(form, form.name) for form in forms("drawn").values()])
def test_means_variances_and_differences_with_both_intervals(form, title):
    fit = form.ask(ROWS, **WORDS)
    axes = fit.plot(ax=ax())
    assert axes.get_xlabel() == title
    np.testing.assert_allclose(segments(axes, 0), fit.conf_int())
    np.testing.assert_allclose(segments(axes, 1), fit.noise_int())
    assert axes.figure.get_supxlabel().startswith("Privacy: eps = 2; neighbours: replace one row")


def test_a_group_that_is_not_told_from_none_says_so():
    fit = dp.dp_mean("age ~ area", ROWS, **WORDS)
    texts = [text.get_text() for text in fit.plot(ax=ax()).texts]
    assert texts == ["too few rows"] * int(fit.params.isna().sum())
    assert len(texts) == 1


def test_tables_of_one_and_of_two_factors():
    fit = dp.dp_table("~ sex + kept", ROWS, **WORDS)
    axes = fit.plot(ax=ax(), caption=False)
    widths = np.array([bar.get_width() for bar in axes.patches]).reshape(2, 2).T
    np.testing.assert_allclose(widths, fit.proportions())
    np.testing.assert_allclose(segments(axes, 1), fit.conf_int().to_numpy()[::2])
    assert axes.figure.get_supxlabel() == ""
    picture = dp.dp_table("~ area", ROWS, **WORDS).plot(ax=ax())
    assert [tick.get_text() for tick in picture.get_yticklabels()] == ["n", "s", "w"]


def test_a_summary_draws_one_of_its_variables():
    fit = dp.dp_summary("age + kept ~ sex", ROWS, **WORDS)
    assert fit.plot(ax=ax()).get_xlabel() == "Mean of age"
    axes = fit.plot(variable="kept", ax=ax())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Share of complete rows", "sex")
    keys = [text.get_text() for text in axes.get_legend().get_texts()]
    assert keys[:2] == ["kept: no", "kept: yes"]
    with pytest.raises(ArgumentError, match="'area' is not described"):
        fit.plot(variable="area")


def test_quantiles_with_the_intervals_that_were_bought():
    fit = dp.dp_quantile("age ~ sex", ROWS, **WORDS)
    axes = fit.plot(ax=ax())
    ends = np.concatenate([segments(axes, 1 + at) for at in range(len(fit.probs))])
    bought = fit.conf_int().to_numpy().reshape(2, -1, 2).transpose(1, 0, 2).reshape(-1, 2)
    np.testing.assert_allclose(ends, bought)


@pytest.mark.product
def test_the_ledger_and_a_plan_stand_against_the_budget():
    book = dp.Ledger(eps=2.0)
    for eps in (0.5, 0.25):
        dp.dp_table("~ sex", ROWS, codebook=BOOK, eps=eps, ledger=book)
    axes = dp.plot_ledger(book, ax=ax())
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    np.testing.assert_allclose(bars, [(0, 0.5), (0.5, 0.75)], atol=1e-6)
    assert "eps = 2" in alt_text(axes)
    with pytest.raises(ArgumentError, match="Ledger"):
        dp.plot_ledger(None)
    session = dp.session(ROWS, codebook=BOOK, ledger=book)
    calls = [dp.call("table", formula, eps=1.0) for formula in ("~ area", "~ sex")]
    planned = session.plan(calls)
    axes = planned.plot(ax=ax())
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    np.testing.assert_allclose(bars, [(0.75, 1.75), (1.75, 2.75)], atol=1e-6)
    assert [t.get_text() for t in axes.get_legend().get_texts()][:2] == ["planned", "does not fit"]


def test_every_result_has_a_picture_or_says_why_not():
    room = Path(inspect.getfile(Printed)).parent
    kinds = [
        kind
        for path in room.glob("[!_]*.py")
        for _, kind in inspect.getmembers(import_module(f"dpmodels.results.{path.stem}"))
        if inspect.isclass(kind) and issubclass(kind, Printed) and "_line" in dir(kind)
    ]
    assert len(set(kinds)) > 20
    for kind in set(kinds):
        if hasattr(kind, "plot"):
            assert {"ax", "caption"} <= set(inspect.signature(kind.plot).parameters), kind
        else:
            with pytest.raises(NotAvailable, match="plot"):
                kind.plot  # noqa: B018
