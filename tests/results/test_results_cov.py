"""Covariance results made from chosen releases: the numbers and what is printed of them."""

import dataclasses
import math
import re

import numpy as np
import pytest

from dpmodels.errors import ArgumentError, FormulaError, NotAvailable
from dpmodels.released import Ball, MomentNoise
from dpmodels.results import CovResult
from dpmodels.results.cov import columns_of, part
from dpmodels.results.estimate_table import COLUMNS

MATRIX = np.array([[0.25, 0.06, 0.0], [0.06, 0.16, -0.02], [0.0, -0.02, 0.09]])
UNITS = np.array([50.0, 1.0, 0.01])
ORIGIN = np.array([40.0, 0.0, -2.0])


@pytest.fixture
def cov(make):
    """A result whose released matrix is MATRIX in columns of very different units."""

    def build(matrix=MATRIX, **changes):
        size = len(matrix)
        options = {"matrix": matrix, "row_norm": math.sqrt(size)}
        if size == 3:
            options |= {"names": ("age", "score", "dose"), "divisor": UNITS, "origin": ORIGIN}
            options |= {"lower": ORIGIN - UNITS, "upper": ORIGIN + UNITS}
        fit = make(**{**options, "denoise": None, **changes})
        return CovResult(fit.call, fit.release, fit.coder)

    return build


def flat(fit):
    """The report as one line of words, however it was wrapped."""
    return re.sub(r"\s+", " ", fit.summary().as_text())


def cells(fit, title, label):
    """Cells of a line of a section."""
    lines = fit.summary().as_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(title))
    line = next(line for line in lines[start:] if line.startswith(label))
    return line[len(label) :].split()


def test_the_matrix_is_in_the_columns_own_units(cov):
    fit = cov()
    matrix_in_units = MATRIX * np.outer(UNITS, UNITS)
    np.testing.assert_allclose(fit.cov, matrix_in_units, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fit.cov_released, matrix_in_units, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fit.sd, np.sqrt(np.diagonal(matrix_in_units)))
    np.testing.assert_allclose(fit.center, ORIGIN)
    roots = np.sqrt(np.diagonal(MATRIX))
    np.testing.assert_allclose(fit.cor, MATRIX / np.outer(roots, roots), atol=1e-12)
    assert (np.diagonal(fit.cor) == 1.0).all()
    assert fit.cov.dims == ("variable", "variable_")
    assert (fit.nobs, fit.ncomplete) == (1_000, 1_000)


def test_the_noise_of_an_entry(cov):
    # At a mean of 0 the first-order law is the noise of the second moment and of the count.
    fit = cov(noise=2e-3)
    by_count = MATRIX * fit.release.noise.count / 1_000
    entry = np.where(np.eye(3), 2e-3 * math.sqrt(2), 2e-3)
    noise_sd = np.hypot(entry, by_count) * np.outer(UNITS, UNITS)
    np.testing.assert_allclose(fit.noise_sd, noise_sd, rtol=1e-6)
    bounds = fit.noise_int(0.95)
    np.testing.assert_allclose(
        bounds["upper"] - bounds["lower"], 2 * 1.959964 * noise_sd[np.triu_indices(3)], rtol=1e-6
    )
    assert list(bounds.columns) == ["column1", "column2", "cov", "lower", "upper"]
    assert list(bounds["column1"]) == ["age", "age", "age", "score", "score", "dose"]


def test_confidence_intervals_add_sampling(cov):
    fit = cov(noise=2e-3)
    bounds, upper = fit.conf_int(), np.triu_indices(3)
    unit = np.outer(UNITS, UNITS)[upper]
    noise = (fit.noise_sd.to_numpy()[upper] / unit) ** 2
    # Rows from -1 to 1 with mean 0: E t_i² t_j² <= v_i for i = j, else the least of v_i and v_j.
    variance_bound = np.minimum.outer(np.diagonal(MATRIX), np.diagonal(MATRIX)) - MATRIX**2
    slope = np.where(np.eye(3), 1 - np.diagonal(MATRIX), 0.0)[upper]
    sampling_variance = 1.959964**2 * slope / 2_000
    half = np.sqrt(1.959964**2 * (noise + variance_bound[upper] / 1_000) + sampling_variance**2)
    lower = np.maximum(
        MATRIX[upper] - half + sampling_variance, np.where(np.eye(3)[upper], 0, -np.inf)
    )
    np.testing.assert_allclose(
        bounds["upper"] / unit, MATRIX[upper] + half + sampling_variance, rtol=1e-6
    )
    np.testing.assert_allclose(bounds["lower"] / unit, lower, rtol=1e-6)


def test_intervals_reach_as_far_as_rows_that_were_shortened(cov):
    plain = cov(noise=2e-3)
    ball = Ball(plain.call.origin, plain.call.row_norm, 0.01, 0.002)
    fit = CovResult(plain.call, dataclasses.replace(plain.release, ball=ball))
    share, unit = 0.01 + 3 * math.hypot(0.002, math.sqrt(0.01 / 1_000)), UNITS[0] ** 2
    bounds, before = fit.conf_int().iloc[0], plain.conf_int().iloc[0]
    assert bounds["upper"] - before["upper"] == pytest.approx((share + share**2) * unit, rel=1e-6)
    assert before["lower"] - bounds["lower"] == pytest.approx(share**2 * unit, rel=1e-3)
    noise, clipped = fit.noise_int().iloc[0], plain.noise_int().iloc[0]
    assert noise["upper"] - clipped["upper"] == pytest.approx((share + share**2) * unit, rel=1e-6)
    assert clipped["lower"] - noise["lower"] == pytest.approx(share**2 * unit, rel=1e-3)
    eigen = [fit.pca().conf_int()["upper"].iloc[0] for fit in (fit, plain)]
    assert eigen[0] - eigen[1] == pytest.approx(3 * (share + share**2), rel=1e-6)


def test_no_interval_of_a_variance_is_a_point(cov):
    # A released variance far below 0 is read as 0: its intervals still reach up.
    fit = cov(np.diag([-3.0, 0.16, 0.09]), noise=1.0)
    for bounds in (fit.noise_int(), fit.conf_int()):
        row = bounds.iloc[0]
        assert row["lower"] == 0
        assert row["upper"] >= 1.9 * math.sqrt(2) * UNITS[0] ** 2


def test_intervals_of_variances_are_not_negative(cov):
    fit = cov(noise=1.0)
    bounds = fit.noise_int()
    same = bounds["column1"] == bounds["column2"]
    assert (bounds.loc[same, "lower"] == 0).all()
    assert (bounds.loc[~same, "lower"] < 0).all()


def test_noise_is_taken_off_by_the_rule(cov):
    rough = MATRIX - 0.12 * np.eye(3)
    released, repaired = cov(rough), cov(rough, denoise="psd", noise=0.03)
    assert np.linalg.eigvalsh(released.cov)[0] < 0
    assert np.linalg.eigvalsh(repaired.cov / np.outer(UNITS, UNITS))[0] > -1e-12
    np.testing.assert_allclose(repaired.cov_released, released.cov, rtol=1e-6, atol=1e-9)
    assert (np.abs(repaired.cor) <= 1 + 1e-12).all()


def test_columns_with_too_noisy_a_variance_are_weak(cov):
    fit = cov(np.diag([0.25, 0.16, 0.001]) + 1e-4, noise=1e-3)
    assert fit.weak_variables == "dose"
    assert fit.weak.to_numpy().tolist() == [False, False, True]
    bound = 4 * math.hypot(1e-3 * math.sqrt(2), 0)
    assert float(fit.cor[0, 2]) == pytest.approx(1e-4 / math.sqrt(0.2501 * bound), rel=1e-3)
    assert (np.diagonal(fit.cor) == 1.0).all()
    assert "3. dose *" in fit.summary().as_text()
    assert "Variance below four times its noise: dose." in flat(fit)


def test_numbers_end_where_noise_begins(cov):
    fit = cov(noise=2e-3)
    assert cells(fit, "Variables", "1. age") == ["40.00", "0.010", "25.00", "0.15"]
    assert cells(fit, "Covariances", "1. age") == ["625.0"]
    assert cells(fit, "Covariances", "2. score") == ["3.00", "0.1600"]
    assert cells(fit, "Correlations", "2. score") == ["0.300", "1.000"]
    assert cells(fit, "Correlations", "3. dose") == ["0", "-0.167", "1.000"]
    lost = cov(noise=50.0)
    assert cells(lost, "Correlations", "3. dose *")[-1] == "1.000"
    assert all(float(cell) == 0 for cell in cells(lost, "Covariances", "3. dose *"))


def test_header_and_notes(cov):
    fit = cov(noise=2e-3, ledger="1.00 of 2.00 eps spent", denoise="auto")
    text = flat(fit)
    assert text.startswith(" Private covariance matrix")
    for message in (
        "Guarantee: eps = 1, delta = 1e-06",
        "Observations: 1,000 (public)",
        "Ledger: 1.00 of 2.00 eps spent",
        'Denoised: by the rule "auto"',
        "privacy noise only. For the population use conf_int().",
        "conf_int() covers at least 95 % for any data within the bounds.",
        "Source: gauss",
    ):
        assert message in text
    assert "Denoised: no" in flat(cov())
    assert "SIMULATION" not in text
    assert "SIMULATION - NOT PRIVATE" in flat(cov(simulated=True))
    assert fit._repr_html_() == fit.summary().as_html()
    assert repr(fit) == "<CovResult '~ .': 3 columns, eps = 1, delta = 1e-06>"


@pytest.mark.parametrize("size", [1, 10, 11, 40])
def test_wide_matrices_show_their_first_columns(cov, size):
    fit = cov(np.eye(size) * 0.1, names=[f"a_rather_long_name_{j}" for j in range(size)])
    text = fit.summary().as_text()
    assert max(map(len, text.splitlines())) <= 100
    assert ("columns of the matrices: see" in flat(fit)) == (size > 10)
    assert len(fit.tidy()) == size * (size + 1) // 2


def test_second_moments_about_zero(cov):
    fit = cov(center=False, origin=np.zeros(3))
    assert fit.center is None
    assert fit.center_noise_sd is None
    assert "Root mean" in fit.summary().as_text()
    assert "conf_int" not in flat(fit)
    assert "center" not in fit.to_xarray()
    with pytest.raises(NotAvailable, match="center=False"):
        fit.conf_int()


def test_tables(cov):
    fit = cov()
    tidy = fit.tidy()
    assert list(tidy.columns) == ["column1", "column2", *COLUMNS, "cor", "released"]
    assert tidy["cor"].tolist()[0] == 1.0
    row = fit.glance().iloc[0]
    assert (row["nobs"], row["ncolumns"], row["nweak"], row["eps"]) == (1_000, 3, 0, 1.0)
    dataset = fit.to_xarray()
    assert {"cov", "cov_released", "cor", "noise_sd", "sd", "center"} <= set(dataset)
    assert dataset.attrs["formula"] == "~ ."


def test_without_a_law_of_the_noise(cov):
    fit = cov()
    noise = MomentNoise(3.2, 0.1, math.nan, math.nan)
    fit = CovResult(fit.call, dataclasses.replace(fit.release, noise=noise))
    assert np.isnan(fit.noise_sd).all()
    assert np.isnan(fit.cor_noise_sd.to_numpy()[np.triu_indices(3, 1)]).all()
    assert fit.noise_int()["lower"].isna().all()
    assert cells(fit, "Variables", "1. age")[-1] == "-"
    assert cells(fit, "Covariances", "2. score") == ["3.000", "0.1600"]
    assert "error distribution of this mechanism is not known" in flat(fit)
    with pytest.raises(NotAvailable, match="gauss"):
        fit.conf_int()


def test_an_estimate_of_the_mechanism_is_the_matrix(cov):
    fit = cov(denoise="auto")
    release = dataclasses.replace(fit.release, estimate=fit.release.second * 0.5)
    better = CovResult(fit.call, release)
    assert float(better.cov[0, 0]) == pytest.approx(0.125 * 50**2, rel=1e-3)
    assert better.cov_released.equals(fit.cov_released)
    assert better.noise_sd.equals(fit.noise_sd)
    assert "the noisier of the two" in flat(better)
    assert "Denoised: by the mechanism" in flat(better)
    # The noise of the unbiased release is not set beside the estimate's standard deviations.
    assert cells(better, "Variables", "1. age")[-1] == "-"
    assert cells(fit, "Variables", "1. age")[-1] != "-"


def test_pictures(cov):
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.use("Agg")
    fit = cov(simulated=True)
    ax = fit.plot(ax=Figure().subplots())
    assert ax.images[0].get_clim() == (-1, 1)
    assert "SIMULATION - NOT PRIVATE" in [text.get_text() for text in ax.texts]
    ax = fit.plot("cov", ax=Figure().subplots())
    np.testing.assert_array_equal(ax.images[0].get_array(), fit.cov)
    with pytest.raises(ArgumentError, match='"cor" or "cov"'):
        fit.plot("heat")


def test_what_was_handed_out_can_be_changed(cov):
    fit = cov()
    before = fit.summary().as_text()
    for name in ("cov", "cov_released", "cor", "noise_sd", "cor_noise_sd", "sd", "weak", "center"):
        getattr(fit, name)[:] = 0
    assert fit.summary().as_text() == before


@pytest.mark.parametrize("words", [{"scale": "var"}, {"scale": 1}, {"ncomp": 4}, {"ncomp": True}])
def test_wrong_words_of_components(cov, words):
    with pytest.raises(ArgumentError, match=next(iter(words))):
        cov().pca(**words)


def test_parts_are_matched_by_public_range_too(cov):
    same, plain = cov(names=("a", "b", "c"), lower=-np.ones(3), upper=np.ones(3)), cov()
    assert part(same.call, columns_of(same.call, "~ c + a")).call.names == ("c", "a")
    with pytest.raises(FormulaError, match="column 'age'"):
        part(plain.call, columns_of(plain.call, "~ age"))
