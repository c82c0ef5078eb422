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


def wide(rows=6_000, seed=3):
    """Two pairs of correlated columns in bounds ten times too wide, one row in 50 far out."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(rows, 2)) * np.where(np.arange(rows) % 50, 1.0, 6.0)[:, None]
    noise = rng.normal(size=(rows, 4)) * [0.3, 1.0, 0.3, 1.0]
    columns = latent[:, [0, 1, 0, 1]] + noise
    return dict(zip("abcd", np.clip(columns, -40, 40).T, strict=True))


WIDE = wide()
WIDE_BOOK = dp.codebook(dict.fromkeys("abcd", (-40, 40)))


def of_wide(mechanism="auto", eps=1.0, data=WIDE, **words):
    with dp.simulation(seed=5):
        return dp.dp_cca(
            "a + b ~ c + d",
            data,
            codebook=WIDE_BOOK,
            eps=eps,
            delta=1e-6,
            mechanism=mechanism,
            **words,
        )


def within(fit, rows):
    """The rows as the release shortened them, in half-ranges about its centre."""
    ball = fit.release.ball
    axes = np.eye(4) if ball.axes is None else ball.axes
    scaled = (np.column_stack(list(rows.values())) - ball.centre) / fit.call.divisor
    along = np.linalg.solve(axes, scaled.T)
    lengths = np.maximum(np.linalg.norm(along, axis=0), ball.radius)
    return (axes @ (along * ball.radius / lengths)).T


def printed(fit):
    return " ".join(str(fit.summary(notes="all")).split())


def correlations(rows, left=2):
    bases = [np.linalg.qr(part - part.mean(axis=0))[0] for part in np.split(rows, [left], axis=1)]
    return np.linalg.svd(bases[0].T @ bases[1])[1]


def test_auto_finds_the_rows_first_where_bounds_are_wide():
    fit, plain = of_wide(), of_wide("gauss")
    assert fit.release.info.name == "rounds"
    assert fit.readable.all()
    assert not plain.readable.any()
    low, high = fit.noise_int().T.to_numpy()
    of_shortened = correlations(within(fit, WIDE))
    # Both intervals err with a probability of 5 %: the seed is fixed.
    assert ((low <= of_shortened) & (of_shortened <= high)).all()
    text = printed(fit)
    assert "results describe the shortened rows" in text
    assert "Mechanism chosen automatically" in text
    once = (pd.DataFrame(WIDE).iloc[part] for part in (slice(0, 3_000), slice(3_000, None)))
    assert of_wide(data=once).release.info.name == "gauss"


@pytest.mark.parametrize("mechanism", ["rounds", "ellipsoid"])
def test_with_little_noise_they_are_those_of_the_shortened_rows(mechanism, tmp_path):
    # Radii grow with the budget: this one leaves rows to be shortened.
    fit = of_wide(mechanism, eps=8.0)
    rows = within(fit, WIDE)
    scaled = (np.column_stack(list(WIDE.values())) - fit.release.ball.centre) / fit.call.divisor
    assert (~np.isclose(rows, scaled)).any(axis=1).sum() > 5
    errors = (fit.cor.to_numpy() - correlations(rows)) / fit.cor_noise_sd.to_numpy()
    assert np.abs(errors).max() < 4  # One false alarm in 8,000 seeds
    assert fit.cor_noise_sd.max() < 0.05
    centre = rows.mean(axis=0) * fit.call.divisor + fit.release.ball.centre
    means = np.concatenate([fit.xcenter.to_numpy(), fit.ycenter.to_numpy()])
    assert means == pytest.approx(centre, abs=0.2)
    variates = rows[:, :2] * fit.call.divisor[:2] @ fit.xcoef.to_numpy()
    assert np.cov(variates.T) == pytest.approx(np.eye(2), abs=0.2)
    assert fit.ridge == (0.0, 0.0)
    fit.save(tmp_path / "a.nc")
    assert str(dp.load(tmp_path / "a.nc").summary()) == str(fit.summary())


def test_joint_moments_take_rounds_and_allow_for_rows_that_were_shortened():
    words = {"codebook": WIDE_BOOK, "eps": 1.0, "delta": 1e-6}
    with dp.simulation(seed=6):
        joint = dp.dp_moments("~ a + b + c + d", WIDE, mechanism="rounds", **words)
        plain = dp.dp_moments("~ a + b + c + d", WIDE, **words)
    ball = joint.release.ball
    assert plain.release.info.name == "gauss"
    assert 0 < ball.shortened < 0.2
    frame = pd.DataFrame(WIDE)
    means = joint.mean("~ d + a")
    exact = frame[["d", "a"]].mean().to_numpy()
    assert ((means["lower"] <= exact) & (exact <= means["upper"])).all()
    reach = ball.shortened * 40  # Of a row at the end of its bounds
    assert (means["upper"] - means["lower"] >= 2 * reach).all()
    covariances = joint.cov("~ c + a").noise_int()
    exact = frame[["c", "a"]].cov().to_numpy()[np.triu_indices(2)]
    assert ((covariances["lower"] <= exact) & (exact <= covariances["upper"])).all()
    pair, expected = joint.cca("a ~ c"), correlations(within(joint, WIDE)[:, [0, 2]], 1)
    low, high = pair.noise_int().to_numpy()[0]
    assert low <= expected[0] <= high
    assert pair.readable.all()
    assert joint.cor_test("a", "c").table["identified"].all()
    assert "shortened rows" in printed(pair)


def test_bought_intervals_of_all_rows_are_of_covariances_and_components():
    words = {"codebook": WIDE_BOOK, "eps": 1.0, "delta": 1e-6, "mechanism": "rounds"}
    with dp.simulation(seed=7):
        joint = dp.dp_moments("~ a + b", WIDE, inference=True, **words)
    assert joint.release.tails is not None
    words = "intervals of covariances and components all rows"
    assert words in printed(joint.lm("a ~ b"))


def test_what_there_is_not_says_why(noisy):
    with pytest.raises(NotAvailable, match="noise_int"):
        noisy.conf_int()
    with pytest.raises(NotAvailable, match="xcoef"):
        noisy.scores  # noqa: B018
    with pytest.raises(BudgetError, match="dp_cca adds Gaussian noise"):
        dp.dp_cca("h ~ w", ROWS, codebook=BOOK, eps=1.0)
    with pytest.raises(FormulaError, match="both sides"):
        dp.dp_cca("~ h + w", ROWS, codebook=BOOK, eps=1.0, delta=1e-6)
