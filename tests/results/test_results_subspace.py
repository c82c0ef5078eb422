"""What is made of released directions: chosen releases, so every table is repeatable."""

import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import dpmodels as dp
from dpmodels.design import row_coder
from dpmodels.errors import ArgumentError, FrameError, NotAvailable
from dpmodels.formula import design
from dpmodels.mechanisms import PPCA
from dpmodels.privacy import ApproxDP, BoundedRangeEvent, GaussianEvent, PureDP, adjacency
from dpmodels.released import SubspaceRelease
from dpmodels.results import MomentsCall, SubspaceResult
from dpmodels.results.estimate_table import COLUMNS
from dpmodels.results.store import FORMAT, open_saved

NAMES = tuple(f"x{i}" for i in range(5))
LIMIT = "eps in the limit of the chain (128 sweeps of plane rotations, a public number)"
FRAME = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 2)))[0]
PUBLIC = {name: [0.5 * i, -0.3, np.nan] for i, name in enumerate(NAMES)}


def call_of(**changes):
    ones = np.ones(len(NAMES))
    call_facts = {
        "formula": "~ .",
        "codebook": dp.codebook.uniform(NAMES, (-1, 1)),
        "names": NAMES,
        "lower": -ones,
        "upper": ones,
        "origin": 0 * ones,
        "divisor": ones,
        "row_norm": 2.0,
        "worst_case": 2.0,
        "unit_rows": False,
        "center": False,
        "scale": "range",
        "denoise": "auto",
        "ncomp": 2,
    }
    return MomentsCall(**{**call_facts, **changes})


PLAIN = SubspaceRelease(
    frame=FRAME,
    variances=None,
    variance_sd=math.nan,
    count=math.nan,
    ordered=False,
    limit=LIMIT,
    expected_loss=12.0,
    rows=1_000,
    info=PPCA.info,
    guarantee=PureDP(1.0),
    adjacency=adjacency("replace"),
    events=(BoundedRangeEvent(1.0),),
    simulated=False,
)
BOUGHT = replace(
    PLAIN,
    variances=np.array([300.0, -2.0]),
    variance_sd=10.0,
    count=800.0,
    ordered=True,
    guarantee=ApproxDP(1.0, 1e-6),
    events=(BoundedRangeEvent(0.8), GaussianEvent(20.0)),
)
PRIVATE = replace(PLAIN, rows=None, adjacency=adjacency("add-remove"))


def fit(release=PLAIN, **changes):
    call = call_of(**changes)
    return SubspaceResult(call, release, row_coder(design(call.formula, call.codebook)))


def test_loadings_have_their_largest_entry_positive():
    table = fit().loadings
    assert table.dims == ("variable", "component")
    assert table["component"].values.tolist() == ["PC1", "PC2"]
    assert table["variable"].values.tolist() == list(NAMES)
    numbers = table.to_numpy()
    np.testing.assert_array_equal(np.abs(numbers), np.abs(FRAME))
    assert (numbers.max(axis=0) == np.abs(numbers).max(axis=0)).all()
    assert fit().ncomp == 2
    assert (fit(replace(PLAIN, frame=-FRAME)).loadings == table).all()


@pytest.mark.parametrize(
    "name", ["eigenvals", "sdev", "eigenvals_noise_sd", "explained_variance_ratio"]
)
def test_what_was_not_bought_says_how_to_buy_it(name):
    assert not hasattr(fit(), name)
    with pytest.raises(NotAvailable, match='eigenvals="private"') as raised:
        getattr(fit(), name)
    assert name in str(raised.value)


def test_bought_variances_are_in_the_units_of_the_rows():
    subspace = fit(BOUGHT)
    # Sums of squares in units of the squared row norm, over the complete rows.
    assert subspace.eigenvals.values.tolist() == [300 * 4 / 800, 0.0]
    assert subspace.sdev.values.tolist() == [math.sqrt(1.5), 0.0]
    expected = 10 * 4 / 800 * np.array([math.hypot(1, 300 / 800), math.hypot(1, 2 / 800)])
    np.testing.assert_allclose(subspace.eigenvals_noise_sd, expected, rtol=1e-12)
    assert fit(BOUGHT, center=True).eigenvals[0] == 300 * 4 / 799
    # The number of complete rows is never taken for more than that of all rows.
    assert fit(replace(BOUGHT, count=2e3)).eigenvals[0] == 300 * 4 / 1_000
    assert fit(replace(BOUGHT, count=-5.0)).eigenvals[0] == 300 * 4
    with pytest.raises(NotAvailable, match="total variance"):
        _ = subspace.explained_variance_ratio


def test_the_expected_loss_is_in_units_of_eigenvalues():
    assert fit().expected_loss == 12 * 4 / 1_000
    assert fit(BOUGHT).expected_loss == 12 * 4 / 800
    assert math.isnan(fit(PRIVATE).expected_loss)
    assert math.isnan(fit(replace(PLAIN, expected_loss=math.nan)).expected_loss)


def test_how_many_rows():
    assert (fit().nobs, fit(BOUGHT).nobs, fit(BOUGHT).ncomplete) == (1_000, 1_000, 800)
    assert math.isnan(fit().ncomplete)
    assert math.isnan(fit(PRIVATE).nobs)
    assert fit(replace(BOUGHT, rows=None)).nobs == 800


def test_tables():
    assert fit().noise().isna().all(axis=None)
    panel = fit(BOUGHT).noise()
    assert list(panel.columns) == ["eigenvalue", "noise_sd"]
    assert list(panel.index) == ["PC1", "PC2"]
    assert panel["eigenvalue"].tolist() == [1.5, 0.0]
    long = fit().tidy()
    assert list(long.columns) == ["column", "PC", *COLUMNS]
    assert len(long) == 10
    assert fit(BOUGHT).tidy("eigenvalues")["std_dev"].tolist() == [math.sqrt(1.5), 0.0]
    with pytest.raises(NotAvailable, match="private"):
        fit().tidy("eigenvalues")
    with pytest.raises(ArgumentError, match='"loadings" or "eigenvalues"'):
        fit().tidy("scores")
    row = fit().glance().iloc[0]
    assert (row["nobs"], row["ncomp"], row["ncolumns"]) == (1_000, 2, 5)
    assert not row["ordered"]
    assert (row["eps"], row["mechanism"]) == (1.0, "ppca")
    data = fit(BOUGHT).to_xarray()
    assert set(data) == {"loadings", "eigenvals", "noise_sd"}
    assert data.attrs["limit"] == LIMIT
    assert set(fit().to_xarray()) == {"loadings"}


def said(fit):
    return " ".join(fit.summary(notes="all").as_text().split())


def test_the_report_says_what_is_known():
    text = said(fit())
    for words in (
        "Private principal subspace",
        "Guarantee: eps = 1",
        "Mechanism: ppca (idealised)",
        "Complete: not released",
        "Expected loss of captured variance 0.048",
        "Only the spanned space is meaningful; its basis is arbitrary.",
        f"The guarantee is {LIMIT}.",
        'eigenvals="private" releases them',
        "Source: ppca, Chaudhuri",
    ):
        assert words in text, words
    assert "Importance" not in text
    assert "SIMULATION" not in text


def test_the_report_of_bought_variances():
    text = said(fit(BOUGHT))
    assert "Importance of components PC1 PC2 Standard deviation 1.225 0 noise sd" in text
    assert "Complete: 800 rows (noise sd 10)" in text
    assert "arbitrary" not in text
    assert "releases them" not in text
    assert "Observations: private" in said(fit(PRIVATE))
    assert "Expected loss of captured variance -" in said(fit(PRIVATE))


def test_the_report_of_all_and_of_many_components():
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(5, 5)))[0]
    assert "All 5 directions span the whole space" in said(fit(replace(PLAIN, frame=turn), ncomp=5))
    exact = said(fit(replace(PLAIN, limit="", ordered=True)))
    assert "in the limit" not in exact
    assert "no chain" in exact
    size = 40
    names = tuple(f"x{i}" for i in range(size))
    ones = np.ones(size)
    wide = fit(
        replace(PLAIN, frame=np.eye(size)[:, :15]),
        names=names,
        codebook=dp.codebook.uniform(names, (-1, 1)),
        **dict.fromkeys(("lower", "upper", "origin", "divisor"), ones),
    )
    text = wide.summary().as_text()
    assert "5 more components" in text
    assert "10 more variables" in text
    assert max(map(len, text.splitlines())) <= 100


def test_small_loadings_are_blank():
    frame = np.array([[0.05, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 0.0], [0.0, 0.0]])
    lines = fit(replace(PLAIN, frame=frame)).summary().as_text().splitlines()
    cells = {line.split()[0]: line.split()[1:] for line in lines if line[:2] in ("x0", "x1", "x2")}
    assert cells == {"x0": [], "x1": ["1.000"], "x2": ["1.000"]}


@pytest.mark.parametrize("release", [PLAIN, BOUGHT, PRIVATE])
def test_every_format_prints(release):
    subspace = fit(release)
    for form in ("as_text", "as_html", "as_latex", "as_markdown", "as_page"):
        assert "PC1" in getattr(subspace.summary(), form)()
    assert subspace._repr_html_() == subspace.summary().as_html()
    assert repr(subspace).startswith("<SubspaceResult '~ .': 2 ")
    stamped = fit(replace(release, simulated=True))
    assert stamped.simulated
    assert "SIMULATION" in stamped.summary().as_text()


def test_public_rows_have_coordinates_where_no_mean_is_needed():
    scores = fit().transform(PUBLIC)
    assert scores.dims == ("row", "component")
    point = np.array([PUBLIC[name][1] for name in NAMES])
    np.testing.assert_allclose(scores[1], point @ fit().loadings.to_numpy())
    assert np.isnan(scores[2]).all()
    with pytest.raises(NotAvailable, match="center=False"):
        fit(center=True).transform(PUBLIC)
    with pytest.raises(NotAvailable, match=r"dp\.load"):
        SubspaceResult(call_of(), PLAIN).transform(PUBLIC)


@pytest.mark.parametrize("eigenvals", [None, "private"])
def test_what_is_read_back_is_the_same(eigenvals, tmp_path):
    rows = {name: np.random.default_rng(2).uniform(-1, 1, 300) for name in NAMES}
    book, budget = dp.codebook(dict.fromkeys(NAMES, (-1, 1))), {"eps": 2.0}
    fit = dp.dp_pca(
        *("~ .", rows), codebook=book, mechanism="ppca", ncomp=2, eigenvals=eigenvals, **budget
    )
    fit.save(tmp_path / "fit.nc")
    assert open_saved(tmp_path / "fit.nc").format == FORMAT
    again = dp.load(tmp_path / "fit.nc")
    assert type(again) is SubspaceResult
    assert again.summary().as_text() == fit.summary().as_text()
    assert again.to_xarray().identical(fit.to_xarray())
    assert again.glance().equals(fit.glance())
    assert again.noise().equals(fit.noise())
    assert again.release.events == fit.release.events
    assert again.release.guarantee == fit.release.guarantee
    assert again.call.codebook == fit.call.codebook
    (tmp_path / "other.nc").write_bytes(b"no netCDF")
    with pytest.raises(FrameError, match="save"):
        open_saved(tmp_path / "other.nc")


@pytest.mark.parametrize("name", ["scores", "fittedvalues", "resid"])
def test_what_exists_for_rows_only_is_not_available(name):
    assert getattr(fit(), name, None) is None
    with pytest.raises(NotAvailable, match=name) as raised:
        getattr(fit(), name)
    assert "transform(newdata)" in str(raised.value)


def test_changing_what_was_handed_out_changes_nothing():
    subspace = fit(BOUGHT)
    before = subspace.summary().as_text()
    subspace.loadings[:] = 0.0
    subspace.eigenvals[:] = 0.0
    panel = subspace.noise()
    panel["eigenvalue"] = -1.0
    assert subspace.summary().as_text() == before
    with pytest.raises(AttributeError):
        subspace.release = None


def test_the_picture_is_stamped_in_a_simulation():
    for simulated in (False, True):
        axes = fit(replace(PLAIN, simulated=simulated)).plot_loadings(ax=Figure().subplots())
        texts = [text.get_text() for text in [*axes.texts, *axes.figure.texts]]
        assert any("SIMULATION" in text for text in texts) == simulated


@pytest.mark.parametrize(
    "words",
    [
        {"mechanism": "ppca", "eps": 1.0},
        {"mechanism": "power", "eps": 1.0, "delta": 1e-6, "eigenvals": "private"},
        {"mechanism": PPCA("sequential", "private"), "budget": dp.ZCDP(0.1), "center": False},
    ],
    ids=str,
)
def test_the_verb_gives_such_a_result(words):
    rng = np.random.default_rng(3)
    data = {name: rng.uniform(-1, 1, 300) for name in NAMES}
    book = dp.codebook.uniform(NAMES, (-1, 1))
    with dp.simulation(seed=1):
        fit = dp.dp_pca("~ .", data, codebook=book, ncomp=2, **words)
    assert isinstance(fit, SubspaceResult)
    assert fit.ncomp == 2
    assert fit.nobs == 300
    assert "SIMULATION" in fit.summary().as_text()
    frame = fit.loadings.to_numpy()
    np.testing.assert_allclose(frame.T @ frame, np.eye(2), atol=1e-12)


def flat(fit):
    return " ".join(fit.summary().as_text().split())


def test_directions_that_theory_expects_to_lose_are_not_shown():
    # Lost is (row norm / 2)² = 1: 250 of 1,000 rows in squared row norms of 4.
    at_limit = fit(replace(PLAIN, expected_loss=249.0))
    beyond_limit = fit(replace(PLAIN, expected_loss=251.0))
    assert (at_limit.lost, beyond_limit.lost) == (False, True)
    why = "The expected loss is as large as the variance of rows of half the row norm."
    for subspace in (at_limit, beyond_limit):
        text = " ".join(subspace.summary(notes="all").as_text().split())
        assert ("Directions are not printed" in text, why in text) == (subspace.lost, subspace.lost)
    assert not any(name in beyond_limit.summary().as_text() for name in NAMES)
    assert beyond_limit.loadings.sizes == {"variable": 5, "component": 2}


def test_the_report_says_why_nothing_is_known_of_the_loss():
    unknown = replace(PLAIN, expected_loss=math.nan)
    assert "expected loss is not known here: directions may be noise" in flat(fit(unknown))
    assert "needs the number of rows, which is private" in flat(fit(PRIVATE))
    for subspace in (fit(), fit(replace(unknown, events=()))):
        assert "may be noise" not in flat(subspace)
        assert "needs the number" not in flat(subspace)
