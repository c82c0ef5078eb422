"""The result of dp_cca: R's numbers at a huge budget, its tables, pictures and refusals."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import BudgetError, FormulaError, NotAvailable

BOOK = dp.codebook(
    h=dp.Numeric(140, 210, label="Height", unit="cm"),
    w=(30, 130),
    c=(60, 130),
    t=(40, 130),
    sex=["F", "M"],
)
FORMULA = "h + w ~ c + t + sex"


def made(rows=8_000):
    rng = np.random.default_rng(1)
    z = rng.normal(size=(rows, 6))
    table = {
        "h": 170 + 8 * z[:, 0] + 3 * z[:, 2],
        "w": 70 + 9 * z[:, 0] + 5 * z[:, 1] + 5 * z[:, 3],
        "c": 95 + 6 * z[:, 0] + 2 * z[:, 1] + 4 * z[:, 4],
        "t": 85 + 3 * z[:, 0] + 8 * z[:, 1] + 4 * z[:, 5],
    }
    clipped_columns = {
        name: np.clip(column, BOOK[name].lower, BOOK[name].upper) for name, column in table.items()
    }
    return clipped_columns | {"sex": rng.choice(["F", "M"], rows)}


ROWS = made()


def released(verb=dp.dp_cca, formula=FORMULA, rows=ROWS, **budget):
    with dp.simulation(seed=2):
        return verb(formula, rows, codebook=BOOK, **({"eps": 1e15, "delta": 1e-6} | budget))


@pytest.fixture(scope="module")
def exact():
    return released()


@pytest.fixture(scope="module")
def noisy():
    return released(eps=5.0)


@pytest.fixture(scope="module")
def lost():
    return released(eps=0.01)


def coded():
    frame = pd.DataFrame(ROWS)
    return frame.assign(**{"sex[T.M]": (frame["sex"] == "M").astype(float)})


def test_correlations_and_coefficients_are_rs_up_to_their_length(exact):
    rows = coded()
    x = rows[list(exact.xcoef["variable"].to_numpy())].to_numpy()
    y = rows[list(exact.ycoef["variable"].to_numpy())].to_numpy()
    bases = [np.linalg.qr(block - block.mean(axis=0))[0] for block in (x, y)]
    expected = np.linalg.svd(bases[0].T @ bases[1])[1]
    assert exact.cor.to_numpy() == pytest.approx(expected, abs=1e-6)
    assert exact.xcenter.to_numpy() == pytest.approx(x.mean(axis=0), rel=1e-6)
    u = (x - exact.xcenter.to_numpy()) @ exact.xcoef.to_numpy()
    v = (y - exact.ycenter.to_numpy()) @ exact.ycoef.to_numpy()
    covariance = np.cov(np.hstack([u, v]).T)
    blocks = np.block([[np.eye(2), np.diag(expected)], [np.diag(expected), np.eye(2)]])
    assert covariance == pytest.approx(blocks, abs=1e-5)
    loadings = np.corrcoef(x.T, u.T)[:2, 2:]
    assert exact.xloadings.to_numpy() == pytest.approx(loadings, abs=1e-5)
    assert np.corrcoef(y.T, v.T)[:3, 3:] == pytest.approx(exact.yloadings.to_numpy(), abs=1e-5)


def test_the_largest_loading_of_x_is_positive(noisy):
    loadings = noisy.xloadings.to_numpy()
    assert (loadings[np.abs(loadings).argmax(axis=0), [0, 1]] > 0).all()


def test_the_joint_release_has_the_same_free_of_charge():
    m = released(dp.dp_moments, "~ .")
    part, separate = m.cca(FORMULA), released()
    assert part.cor.to_numpy() == pytest.approx(separate.cor.to_numpy(), abs=1e-6)
    assert "Part of one release" in str(part.summary())
    with pytest.raises(FormulaError, match="was not released"):
        m.cca("h ~ nope")


def test_tables_say_what_is_told(noisy, lost):
    text = str(noisy.summary())
    for words in ("Loadings of x", "Loadings of y", "noise floor", "Height (cm)", "SIMULATION"):
        assert words in text
    assert noisy.tidy()["identified"].all()
    assert (noisy.noise_int().to_numpy()[:, 0] > 0).all()
    nothing = str(lost.summary())
    assert "not identified" in nothing
    assert "Loadings of x" not in nothing
    assert lost.glance()["nreadable"][0] == 0
    assert lost.noise_int().to_numpy().tolist() == [[0.0, 1.0]] * 2


def test_a_ridge_is_said():
    rows = ROWS | {"w": (ROWS["h"] - 140) / 70 * 100 + 30}
    ridged = released(rows=rows, eps=5.0)
    assert ridged.ridge[0] > 0
    assert "Ridges of" in str(ridged.summary(notes="all"))
    assert "cor and xcoef are understated" in str(ridged.summary())
    assert np.isnan(ridged.noise_floor)


def test_it_stands_beside_others_and_draws(noisy):
    table = dp.etable([noisy, noisy])
    assert "Canonical correlations" in str(table.summary())
    axes = noisy.plot()
    assert axes.get_xlabel() == "Canonical correlation"
    assert "noise and sampling" not in {text.get_text() for text in axes.get_legend().get_texts()}


def test_what_there_is_not_says_why(noisy):
    with pytest.raises(NotAvailable, match="noise_int"):
        noisy.conf_int()
    with pytest.raises(NotAvailable, match="xcoef"):
        noisy.scores  # noqa: B018
    with pytest.raises(BudgetError, match="dp_cca adds Gaussian noise"):
        dp.dp_cca("h ~ w", ROWS, codebook=BOOK, eps=1.0)
    with pytest.raises(FormulaError, match="both sides"):
        dp.dp_cca("~ h + w", ROWS, codebook=BOOK, eps=1.0, delta=1e-6)
