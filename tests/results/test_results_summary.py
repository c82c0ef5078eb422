"""The printed report: needed lines, and what it must not claim."""

import re
from dataclasses import replace

import numpy as np
import pytest

from dpmodels.errors import NotAvailable
from dpmodels.privacy import ZCDP, ApproxDP
from dpmodels.report import Summary
from dpmodels.results import PCAResult

FORMATS = ("as_text", "as_html", "as_latex", "as_markdown", "as_page")


def text(fit):
    return fit.summary().as_text()


def flat(fit):
    """The report as one line of words, however it was wrapped."""
    return re.sub(r"\s+", " ", text(fit))


def row(fit, label):
    """Cells of the first line that starts with a label."""
    line = next(line for line in text(fit).splitlines() if line.startswith(label))
    return line[len(label) :].split()


def test_header(make):
    printed = text(make(noise=0.01, ledger="1.00 of 2.00 eps spent", neighbours="replace"))
    assert printed.splitlines()[0].strip() == "Private principal components analysis"
    for pair in (
        r"Formula: +~ \.",
        r"Guarantee: +eps = 1, delta = 1e-06",
        r"Mechanism: +gauss \(exact lattice\)",
        r"Neighbours: +replace one row, n public",
        r"Observations: +1,000 \(public\)",
        r"Ledger: +1\.00 of 2\.00 eps spent",
        r"Variables: +5, centred, scale = range",
        r"Row norm: +2\.24 \(from the codebook\)",
        r"Complete: +1,000 rows \(noise sd 3\.2\)",
        r"Variance: +1\.63",
    ):
        assert re.search(pair, printed), pair


def test_header_of_other_choices(make):
    text = flat(make(center=False, scale=None, row_norm=1.5, neighbours="add-remove", noise=1e-6))
    assert "5, not centred, scale = none" in text
    assert "1.50 (longer rows are shrunk; codebook: 2.24)" in text
    assert re.search(r"Observations: +private", text)
    assert re.search(r"Ledger: +none", text)
    assert "public" not in text


def test_tables(make):
    fit = make(noise=0.01)
    assert row(fit, "Importance of components") == ["PC1", "PC2", "PC3", "PC4", "*", "PC5", "*"]
    assert len(row(fit, "Standard deviation")) == 5
    for label in ("Debiased sd", "Proportion of variance", "Cumulative proportion"):
        cells = row(fit, label)
        assert "-" not in cells[:3]
        assert cells[3:] == ["-", "-"], label
    assert row(fit, "  non-private component")[3:] == ["-", "-"]


def test_what_is_printed_is_what_the_attributes_hold(make):
    fit = make(noise=0.002)
    np.testing.assert_allclose(
        [float(x) for x in row(fit, "Standard deviation")], fit.sdev, atol=6e-3
    )
    share = [float(x) for x in row(fit, "Proportion of variance")]
    np.testing.assert_allclose(share, fit.explained_variance_ratio, atol=6e-3)
    summed = [float(x) for x in row(fit, "Cumulative proportion")]
    np.testing.assert_allclose(summed, np.cumsum(fit.explained_variance_ratio), atol=6e-3)


@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-3, 1e-2])
def test_no_digit_is_printed_that_noise_does_not_leave(make, noise):
    fit = make(noise=noise)
    sds = fit.noise()["noise_sd"] / (2 * fit.sdev.to_numpy())
    for cell, sd in zip(row(fit, "Standard deviation"), sds, strict=True):
        decimals = len(cell.partition(".")[2])
        # The last digit stands at the second of the sd, or before it.
        assert 10.0**-decimals >= sd / 100
        assert decimals <= 4


def test_loadings(make):
    turn = np.array([[0.96, 0.28, 0.0], [-0.28, 0.96, 0.0], [0.0, 0.0, 1.0]])
    fit = make(matrix=turn @ np.diag([0.9, 0.3, 0.001]) @ turn.T, noise=0.003)
    lines = text(fit).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Loadings"))
    assert (
        lines[start + 1 : start + 6]
        == [line for line in lines if re.match(r" +PC1 |x[012]|noise sd of a loading", line)][-5:]
    )
    assert row(fit, "x0") == ["0.960", "0.280"]
    assert row(fit, "x1") == ["-0.280", "0.960"]
    assert row(fit, "x2") == []
    assert len(row(fit, "noise sd of a loading")) == 2


def test_loadings_within_their_noise_are_blank(make):
    turn = np.array([[0.9, np.sqrt(0.19)], [-np.sqrt(0.19), 0.9]])
    matrix = turn @ np.diag([0.3, 0.2]) @ turn.T
    assert row(make(matrix=matrix, noise=1e-3), "x0") == ["0.900", "0.436"]
    noisy = make(matrix=matrix, noise=0.028)
    assert noisy.spectrum.distinct.all()
    assert row(noisy, "x0") == ["0.9"]


def test_components_too_close_are_named(make):
    fit = make((0.9, 0.5, 0.495, 0.2, 0.199), noise=0.004)
    assert (
        "Too close to separate: PC2, PC3; PC4, PC5. Interpret the space that they span, not "
        "the loadings of each." in flat(fit)
    )
    assert "Too close" not in text(make(noise=1e-4))
    close = make((0.9, 0.5, 0.495, 0.2), noise=0.004, ncomp=2)
    assert "Too close to separate: PC2, PC3." in flat(close)


def test_all_components_below_the_floor(make):
    fit = make((0.03, 0.02, 0.01), noise=0.1)
    printed = text(fit)
    assert "Loadings" not in printed
    assert "x0" not in printed
    assert "No component is above it" in flat(fit)
    assert row(fit, "Importance of components") == ["PC1", "*", "PC2", "*", "PC3", "*"]
    for label in ("Debiased sd", "95% noise interval (sd)", "Proportion of variance"):
        assert row(fit, label) == ["-"] * 3
    assert re.search(r"Variance: +-", printed)
    assert "nan" not in printed.lower()


def test_floor_note(make):
    fit = make(noise=0.01)
    floor = f"{np.sqrt(fit.noise_floor):.3f}"
    assert f"* below the noise floor (standard deviation {floor}): not distinguishable" in flat(fit)
    assert "*" not in text(make(noise=1e-6))


def test_noise_and_population_are_not_mixed_up(make):
    sentence = "Noise intervals are for these rows; for the population use conf_int()."
    assert sentence in flat(make())
    assert "conf_int() covers at least 95 % for any data within the bounds" in flat(make())
    assert "conf_int" not in flat(make(center=False))
    correlation = flat(make(scale="sd"))
    assert "Noise intervals are for these rows, not for the population." in correlation
    assert "conf_int" not in correlation
    assert "confidence" not in flat(make()).lower()


def test_weak_variables_note(make):
    fit = make(matrix=np.diag([0.5, 0.4, 0.001]), noise=0.01, scale="sd", names=["p", "q", "rare"])
    sentence = (
        "Variance below four times its noise: rare. They were divided by the root of that bound"
    )
    assert sentence in flat(fit)
    assert "Variance below" not in text(make(scale="sd"))


@pytest.mark.parametrize(
    ("delta", "is_noted"), [(1e-6, False), (9e-5, False), (1.1e-4, True), (0.01, True)]
)
def test_large_delta_note(make, delta, is_noted):
    text = flat(make(guarantee=ApproxDP(1.0, delta)))
    assert ("delta is not small relative to 1/n" in text) == is_noted


def test_no_delta_note_without_delta(make):
    assert "delta" not in text(make(guarantee=ZCDP(0.5)))


def test_source_and_reason(make):
    text = " ".join(str(make(reason="only one is known").summary(notes="all")).split())
    assert "Source: gauss, Dwork et al. (2014) in isometric coordinates" in text
    assert "Mechanism chosen automatically: only one is known" in text
    assert "chosen" not in flat(make())


def test_simulations_are_stamped_in_every_format(make):
    for form in FORMATS:
        text = getattr(make(simulated=True).summary(), form)()
        assert text.count("SIMULATION - NOT PRIVATE") >= 2, form
        assert "SIMULATION" not in getattr(make().summary(), form)()


def test_one_variable(make):
    fit = make((0.4,))
    assert row(fit, "Importance of components") == ["PC1"]
    assert row(fit, "Proportion of variance") == ["1.000"]
    assert row(fit, "x0") == ["1.000"]
    assert "0.999999" in text(fit)
    assert "nan" not in text(fit)


def test_sixty_variables(make):
    spectrum = 0.5 * 0.9 ** np.arange(60)
    fit = make(spectrum, noise=1e-4)
    printed = text(fit)
    assert max(map(len, printed.splitlines())) <= 100
    assert "50 more components: see noise() and loadings." in flat(fit)
    assert "30 more variables with smaller loadings: see loadings." in flat(fit)
    assert (
        len({line.split()[0] for line in printed.splitlines() if re.match(r"x\d+\b", line)}) == 30
    )
    assert "PC10" in printed
    assert "PC11" not in printed


@pytest.mark.parametrize("length", [12, 40, 130])
def test_long_names_stay_within_the_page(make, length):
    names = [f"{'a long variable name ' * 9}"[:length] + str(j) for j in range(5)]
    fit = make(noise=0.01, names=names, codebook=make().call.codebook)
    assert max(map(len, text(fit).splitlines())) <= 100


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 25])
@pytest.mark.parametrize("noise", [1e-6, 1e-2, 0.2])
def test_every_width_is_within_the_page(make, size, noise):
    printed = text(make(0.9 * 0.8 ** np.arange(size), noise=noise))
    assert max(map(len, printed.splitlines())) <= 100
    assert not re.search(r"\b(nan|inf|None|array)\b", printed)


def test_summary_prints_itself(make):
    summary = make().summary()
    assert isinstance(summary, Summary)
    assert str(summary) == repr(summary) == summary.as_text()
    assert summary._repr_html_() == summary.as_html()
    assert make()._repr_html_() == summary.as_html()
    assert summary.as_html().lstrip().startswith("<")
    assert "\\begin{tabular}" in summary.as_latex()
    assert "| PC1" in summary.as_markdown().replace("|PC1", "| PC1")
    assert "<html" in summary.as_page()


def test_every_format_has_the_same_cells(make):
    fit = make(noise=0.01)
    cells = {*row(fit, "Standard deviation"), *row(fit, "Proportion of variance")} - {"-"}
    for form in FORMATS:
        text = getattr(fit.summary(), form)()
        assert all(cell in text for cell in cells), form


def test_no_proportion_exceeds_the_whole(make):
    # Noise below 0 takes more off the trace than the distinct components leave.
    fit = make((0.9, 0.5, -0.06, -0.1), noise=0.03)
    assert fit.total_variance < fit.all_eigenvals[:2].sum()
    for cells in (row(fit, "Proportion of variance"), row(fit, "Cumulative proportion")):
        assert all(0 <= float(cell) <= 1 for cell in cells if cell != "-")
    assert row(fit, "Cumulative proportion")[1] == "1.000"
    assert (fit.tidy("eigenvalues")["cumulative"] <= 1).all()


def test_of_an_estimate_nothing_is_said_that_belongs_to_another(make):
    plain = make((0.9, 0.5, 0.2, 0.02, 0.01), noise=0.01)
    # Its own third component is the smallest of the unbiased release's.
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(5, 5)))[0]
    estimate = turn @ np.diag([0.7, 0.4, 0.3, 0.1, 0.0]) @ turn.T
    release = replace(plain.release, estimate=estimate * 999 / plain.call.row_norm**2)
    fit = PCAResult(plain.call, release)
    np.testing.assert_allclose(fit.eigenvals[:4], [0.7, 0.4, 0.3, 0.1], rtol=1e-3)
    panel = fit.noise()
    assert panel[["noise_sd", "floor", "debiased", "lower", "upper", "cos2"]].isna().all(axis=None)
    assert panel["distinct"].tolist() == [True, True, True, False, False]
    for absent in ("Debiased", "95% noise interval", "Expected cos2", "noise floor (standard"):
        assert absent not in text(fit)
    assert "error distribution of the mechanism's estimate is not known" in flat(fit)
    assert "3 components are above the noise of the underlying unbiased release" in flat(fit)
    assert row(fit, "Importance of components")[:5] == ["PC1", "PC2", "PC3", "PC4", "*"]
    with pytest.raises(NotAvailable, match="gauss"):
        fit.conf_int()


def test_digits_of_loadings_end_where_noise_begins(make):
    turn = np.array([[0.8, 0.6], [-0.6, 0.8]])
    matrix = turn @ np.diag([0.4, 0.1]) @ turn.T
    for noise, printed in ((1e-4, "0.800"), (7e-3, "0.80"), (0.04, "0.8")):
        cells = row(make(matrix=matrix, noise=noise), "x0")
        assert cells[0] == printed


def test_signs_that_noise_leaves_open_are_named(make):
    turn = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    fit = make(matrix=turn @ np.diag([0.5, 0.2]) @ turn.T, noise=0.01)
    assert "Sign not determined, given the noise: PC2." in flat(fit)
    assert "Sign not determined" not in text(make(matrix=np.diag([0.5, 0.2]), noise=0.01))


def test_components_more_noise_than_signal_have_no_loadings(make):
    fit = make((0.9, 0.062, 0.0, 0.0, 0.0, -0.01), noise=0.0105)
    assert fit.spectrum.distinct.tolist()[:2] == [True, True]
    assert not fit.spectrum.readable[1]
    assert "Loadings not printed, as they are lost in noise: PC2." in flat(fit)
    assert len(row(fit, "noise sd of a loading")) == 1
