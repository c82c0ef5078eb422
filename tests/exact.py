"""Exact answers on public rows, by other packages: what a huge budget has to give."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import patsy
import statsmodels.api as sm
from scipy import stats
from scipy.optimize import minimize

import dpmodels as dp

Table = Mapping[str, Any]
# Of a huge budget, in units of a column's half-range: rounding, and noise of few lattice steps.
NEAR = 2e-3


def complete(formula: str, data: Table, book: dp.Codebook) -> pd.DataFrame:
    """The rows on which everything a formula names is known, within their bounds."""
    used = set(re.findall(r"\w+", formula))
    frame = pd.DataFrame({name: data[name] for name in book if name in used})
    for name in frame:
        declared = book[name]
        if isinstance(declared, dp.Categorical):
            frame[name] = pd.Categorical(frame[name], categories=list(declared.levels))
        else:
            frame[name] = frame[name].clip(declared.lower, declared.upper)
    return frame.dropna()


def sides(formula: str, frame: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
    """The response, of a category the indicator of its last level, and the coded terms."""
    left, right = patsy.dmatrices(formula, frame, return_type="dataframe")
    return left.iloc[:, -1].to_numpy(), right


def lstsq(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Least squares, weighted or not."""
    weights = fit.model.weights or ""
    frame = complete(f"{formula} {weights}", data, book)
    y, terms = sides(formula, frame)
    root = np.sqrt(frame[weights].to_numpy()) if weights else np.ones(len(y))
    x = terms.to_numpy() * root[:, None]
    expected = np.linalg.lstsq(x, y * root, rcond=None)[0]
    assert fit.params.index.tolist() == list(terms)
    spans = np.ptp(terms.to_numpy(), axis=0) / 2 + (np.ptp(terms.to_numpy(), axis=0) == 0)
    away = np.abs(fit.params.to_numpy() - expected) * spans
    assert (away <= NEAR * np.ptp(y)).all(), f"off by {away}"


def binomial(y: np.ndarray, linear: np.ndarray) -> float:
    return float(np.logaddexp(0.0, (1 - 2 * y) * linear).sum())


def huber(y: np.ndarray, linear: np.ndarray, width: float = 0.5) -> float:
    margins = (2 * y - 1) * linear
    round_part = (1 + width - margins).clip(0, 2 * width) ** 2 / (4 * width)
    return float((round_part + (1 - width - margins).clip(0)).sum())


def minimum(loss: Callable[..., float], closest: float = 0.02) -> Callable[..., None]:
    """Compare with the minimum of a sum of losses and the public ridge, in released axes."""

    def answer(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
        y, terms = sides(formula, complete(formula, data, book))
        matrix, ridge = fit.call.held_in(fit.release.ball).matrix, fit.release.ridge
        rows = terms.to_numpy() @ matrix
        assert fit.params.index.tolist() == list(terms)

        def total(point: np.ndarray) -> float:
            return loss(y, rows @ point) + ridge * float(point @ point) / 2

        result = minimize(total, np.zeros(rows.shape[1]), method="BFGS", options={"gtol": 1e-4})
        away = np.abs(fit.release.coefficients - result.x)
        assert (away <= closest).all(), f"off by {away} in units of the ball"

    return answer


def likelihood(family: Any, closest: float) -> Callable[..., None]:
    """Compare with statsmodels' maximum likelihood."""

    def answer(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
        y, terms = sides(formula, complete(formula, data, book))
        matrix = fit.call.matrix
        result = sm.GLM(y, terms.to_numpy() @ matrix, family=family).fit()
        away = np.abs(np.linalg.solve(matrix, fit.params.to_numpy()) - result.params)
        assert (away <= closest * result.bse).all(), f"off by {away / result.bse} standard errors"

    return answer


def by_level(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Compare with statsmodels' multinomial logit, in units of its standard errors."""
    frame = complete(formula, data, book)
    left, right = formula.split("~")
    y = frame[left.strip()].cat.codes.to_numpy()
    _, terms = sides(f"one ~ {right}", frame.assign(one=1))
    result = sm.MNLogit(y, terms.to_numpy()).fit(disp=0)
    assert fit.params.columns.tolist() == list(book[left.strip()].levels)[1:]
    assert fit.params.index.tolist() == list(terms)
    away = np.abs(fit.params.to_numpy() - result.params) / result.bse
    assert (away <= 3.0).all(), f"off by {away} standard errors"


def _grouped(formula: str, data: Table, book: dp.Codebook) -> tuple[str, list[str], pd.DataFrame]:
    """The number that is measured, what it is grouped by, and the complete rows."""
    left, right = (
        [name.strip() for name in side.split("+") if name.strip()] for side in formula.split("~")
    )
    (measured,), groups = (left, right) if left else (right, [])
    return measured, groups, complete(formula, data, book)


def by_group(statistic: Callable[[pd.Series], float]) -> Callable[..., None]:
    """Compare ``params`` with a statistic of each group's rows."""

    def answer(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
        measured, groups, frame = _grouped(formula, data, book)
        if groups:
            expected = frame.groupby(groups, observed=False)[measured].apply(statistic).to_numpy()
        else:
            expected = np.array([statistic(frame[measured])])
        span = float(np.ptp(frame[measured]))
        np.testing.assert_allclose(fit.params.to_numpy() / span, expected / span, atol=NEAR)

    return answer


def totals(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Compare totals with those of each group's rows."""
    measured, groups, frame = _grouped(formula, data, book)
    expected = np.array([frame[measured].sum()])
    if groups:
        expected = frame.groupby(groups, observed=False)[measured].sum().to_numpy()
    scale = len(frame) * float(np.ptp(frame[measured]))
    np.testing.assert_allclose(fit.params.to_numpy() / scale, expected / scale, atol=NEAR)


def difference(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """The mean, or the first group's less the second's."""
    measured, groups, frame = _grouped(formula, data, book)
    means = [frame[measured].mean()]
    if groups:
        means = frame.groupby(groups, observed=False)[measured].mean().tolist()
    expected = means[0] - means[1] if groups else means[0]
    assert abs(fit.params - expected) <= NEAR * np.ptp(frame[measured])


def cells(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Counts of the declared combinations of levels."""
    factors = [name.strip() for name in formula.strip(" ~").split("+")]
    frame = complete(formula, data, book)
    expected = frame.groupby(factors, observed=False).size().to_numpy()
    np.testing.assert_allclose(fit.counts.to_numpy().ravel(), expected, atol=NEAR)


def margins(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Counts of each margin, of the rows that are complete in it."""
    frame = pd.DataFrame({name: data[name] for name in ("sex", "region")})
    for name in ("sex", "region"):
        frame[name] = pd.Categorical(frame[name], categories=list(book[name].levels))
    wage = np.clip(data["wage"], book["wage"].lower, book["wage"].upper)
    frame["cut(wage, [-5, 10, 45])"] = pd.cut(wage, [-5, 10, 45], include_lowest=True)
    for term in fit.terms:
        result = fit.table(*term.split(":"))
        expected = frame.groupby(list(result.factors), observed=False).size().to_numpy()
        np.testing.assert_allclose(result.released.to_numpy().ravel(), expected, atol=NEAR)
        np.testing.assert_array_equal(result.counts.to_numpy().ravel(), expected)
        assert result.nincomplete == len(frame) - expected.sum()


def synthetic(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Shares of the cells of two columns, of the rows that are complete in both."""
    frame = pd.DataFrame({name: data[name] for name in ("sex", "region")})
    for name in ("sex", "region"):
        frame[name] = pd.Categorical(frame[name], categories=list(book[name].levels))
    counts = frame.groupby(["sex", "region"], observed=False).size()
    shares = fit.table("~ sex + region").params.to_numpy()
    np.testing.assert_allclose(shares, counts / counts.sum(), atol=NEAR)


def events(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Counts by period of rows of which the event is true, and their running sums."""
    groups = [name for name in book if name in formula and name != "age"]
    frame = complete(f"{formula} {fit.time}", data, book)
    expected = frame[frame["age"] > 50].groupby([*groups, fit.time], observed=False).size()
    values = fit.counts.to_numpy()
    np.testing.assert_allclose(values.ravel(), expected.to_numpy(), atol=NEAR)
    np.testing.assert_allclose(fit.totals.to_numpy(), np.cumsum(values, axis=-1), atol=NEAR)


def bins(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Counts of bins that are closed above."""
    measured, groups, frame = _grouped(formula, data, book)
    cut = pd.cut(frame[measured], fit.breaks, include_lowest=True).rename("bin")
    expected = frame.groupby([*groups, cut], observed=False).size().to_numpy()
    np.testing.assert_allclose(fit.counts.to_numpy().ravel(), expected, atol=NEAR)


def plane(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Counts of cells of two numbers that are closed above."""
    groups = [name for name in fit.counts.dims if name not in fit.variables]
    frame = complete(" + ".join([*fit.variables, *groups]), data, book)
    breaks = zip(fit.variables, (fit.along, fit.across), strict=True)
    cuts = [pd.cut(frame[name], ends, include_lowest=True) for name, ends in breaks]
    expected = frame.groupby([*groups, *cuts], observed=False).size().to_numpy()
    np.testing.assert_allclose(fit.counts.to_numpy().ravel(), expected, atol=NEAR)


def ranks(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Quantiles are between the order statistics next to their rank, to a cell of the grid."""
    measured, groups, frame = _grouped(formula, data, book)
    parts = [value for _, value in frame.groupby(groups, observed=False)] if groups else [frame]
    declared = book[measured]
    # Half of the cells are equal.
    cell = 2 * (declared.upper - declared.lower) / fit.grid
    for value, rows in zip(fit.params.to_numpy(), parts, strict=True):
        low, high = (
            np.quantile(rows[measured], fit.probs, method=f"{side}") for side in ("lower", "higher")
        )
        beside = np.ptp(rows[measured]) / len(rows) * 10
        assert (low - beside - cell <= value).all(), f"{value} below {low}"
        assert (value <= high + beside + cell).all(), f"{value} above {high}"


def overview(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Each variable by itself, by groups or not."""
    left, _, right = (part.strip() for part in formula.partition("~"))
    described, groups = (left, right) if left else (right, "")
    for name in (part.strip() for part in described.split("+")):
        values = fit[name]
        if isinstance(book[name], dp.Categorical):
            cells(values, f"~ {groups} + {name}" if groups else f"~ {name}", data, book)
        else:
            request = f"{name} ~ {groups}" if groups else f"~ {name}"
            by_group(np.mean)(values, request, data, book)


def everything_asked(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Moments of all columns give the covariance of any."""
    rows = patsy.dmatrix(formula, complete(formula, data, book), return_type="dataframe")
    rows = rows.drop(columns="Intercept")
    expected = np.cov(rows.to_numpy(), rowvar=False)
    spans = np.ptp(rows.to_numpy(), axis=0) / 2
    away = np.abs(fit.cov().cov.to_numpy() - expected) / np.outer(spans, spans)
    assert (away <= NEAR).all(), f"off by {away}"


def canonical(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Correlations of both sides are those of an orthogonal basis of each."""
    sides = (f"~ {side}" for side in formula.split("~"))
    total = complete(formula.replace("~", "+"), data, book)
    bases = []
    for side in sides:
        rows = patsy.dmatrix(side, total, return_type="dataframe").drop(columns="Intercept")
        bases.append(np.linalg.qr((rows - rows.mean()).to_numpy())[0])
    expected = np.linalg.svd(bases[0].T @ bases[1])[1]
    assert (np.abs(fit.cor.to_numpy() - expected) <= 1e-4).all()


def bounds(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Nearly all rows are inside, and as many beyond as stated."""
    for name, entry in fit.found.items():
        values = complete(name, data, book)[name]
        assert abs(entry.rows - len(values)) < 0.5
        beyond = (values < entry.lower) | (values > entry.upper)
        assert beyond.mean() <= 0.01
        assert entry.outside <= beyond.sum() + 0.5


def followed(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """The life table of each group, the second level the event."""
    frame = complete(formula, data, book)
    cuts = fit.counted.breaks
    place = pd.cut(frame["age"], cuts, labels=False, include_lowest=True)
    region = frame["region"] if "region" in frame else pd.Series("(all)", frame.index)
    table = fit.tidy().to_dict("list")
    expected: dict[str, list[float]] = {name: [] for name in ("n_risk", "n_event", "estimate")}
    for _, value in frame.groupby(region, observed=False):
        here = place[value.index]
        dead = value["sex"] == "M"
        left = 1.0
        for k in range(len(cuts) - 1):
            risk, events = int((here >= k).sum()), int((dead & (here == k)).sum())
            lost = int((~dead & (here == k) & (value["age"] < cuts[-1])).sum())
            left *= 1 - events / (risk - lost / 2)
            for name, item in zip(expected, (risk, events, left), strict=True):
                expected[name].append(item)
    for name, values in expected.items():
        np.testing.assert_allclose(table[name], values, atol=NEAR)


def levels(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """All that two rows name, and how many there are."""
    for name in fit.names:
        expected = pd.Series(data[name]).value_counts().sort_index()
        result = fit.counts.loc[name]
        assert result.index.tolist() == expected[expected > 1].index.tolist()
        assert result.tolist() == expected[expected > 1].tolist()


def largest(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """The levels with most rows, those with as many in any order, and how many rows they have."""
    names = [name.strip() for name in formula.partition("~")[2].split(":")]
    rows = complete("+".join(names), data, book).groupby(names, observed=False).size()
    expected = rows.sort_values(ascending=False)[: fit.n_requested]
    np.testing.assert_allclose(fit.values, expected, atol=NEAR)
    assert rows.loc[list(fit.selected)].tolist() == expected.tolist()


def gained(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Each column that takes most off what those before it leave, and how much."""
    y, terms = sides(formula, complete(formula, data, book))
    x = terms.drop(columns="Intercept", errors="ignore").apply(lambda value: value - value.mean())
    left = total = y - np.mean(y)
    for name, value in fit.values.items():
        selected = (x.T @ left) ** 2 / (x**2).sum() / (total @ total)
        assert name == selected.drop(list(fit.selected[: fit.selected.index(name)])).idxmax()
        assert abs(value - selected[name]) <= NEAR
        left = left - x[name] * (x[name] @ left) / (x[name] @ x[name])


def correlated(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """The columns of largest correlation, or all above, and their correlations."""
    y, terms = sides(formula, complete(formula, data, book))
    terms = terms.drop(columns="Intercept", errors="ignore")
    result = np.corrcoef(terms.to_numpy(), y, rowvar=False)[-1, :-1]
    order = np.arange(len(result)) if fit.threshold is not None else np.argsort(-np.abs(result))
    names = terms.columns[order[: fit.n_requested]]
    assert list(fit.selected) == list(names)
    expected = pd.Series(result, terms.columns)[names] * (len(y) ** 0.5 if fit.score == "z" else 1)
    np.testing.assert_allclose(fit.values, expected, atol=NEAR)


def correlated_with(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Correlations of the columns that were looked at."""
    left, right = formula.split("~")
    y, terms = sides(f"{right} ~ {left}", complete(formula, data, book))
    expected = [np.corrcoef(terms[name], y)[0, 1] for name in fit.params.index]
    np.testing.assert_allclose(fit.params, expected, atol=NEAR)


def tested_with(fit: Any, formula: str, data: Table, book: dp.Codebook) -> None:
    """Logarithms of p-values of z-tests, in units of declared half-ranges."""
    left, right = formula.split("~")
    y, terms = sides(f"{right} ~ {left}", complete(formula, data, book))
    for name, param in fit.params.items():
        result = book.get(name)
        half = (result.upper - result.lower) / 2 if isinstance(result, dp.Numeric) else 0.5
        z = np.corrcoef(terms[name], y)[0, 1] * np.sqrt(len(y)) * terms[name].std(ddof=0) / half
        two = fit.call.alternative == "two-sided"
        p = 2 * stats.norm.sf(abs(z)) if two else stats.norm.sf(z)
        smallest = fit.q / (2 * fit.hypotheses)
        np.testing.assert_allclose(param, np.log(max(p, smallest)), atol=NEAR)
