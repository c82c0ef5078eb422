"""No row, however odd, makes an exception or a warning; the table always prints."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from contract_cases import Case

import dpmodels as dp
from dpmodels.results import PCAResult

ODD_BOOK = dp.codebook(a=(-1, 1), b=(0, 10), g=["u", "v", "w"])
# Every kind of factor a formula has, alone and in products.
ODD_FORMULA = (
    "~ a * b + g + log1p(b) + poly(a, 2) + bs(b, knots=[3]) + ifelse(a > 0, 1, 0) "
    "+ cut(b, [0, 2, 5]) + C(g):a + (a > 0):b"
)
PLAIN = {"a": [0.5] * 4, "b": [2.0] * 4, "g": ["u"] * 4}


def finite_and_printable(fit: PCAResult) -> None:
    release = fit.release
    released = (release.count, release.second, 0.0 if release.total is None else release.total)
    panel = fit.noise()
    shown = (fit.loadings, fit.eigenvals, fit.sdev, panel["eigenvalue"], panel["noise_sd"])
    for values in (*released, *shown, fit.noise_sd, fit.noise_floor, fit.nobs, fit.ncomplete):
        assert np.isfinite(values).all()
    summary = fit.summary()
    for text in (summary.as_text(), summary.as_html(), summary.as_latex(), summary.as_markdown()):
        assert "Standard deviation" in text
    assert "PCAResult" in repr(fit)
    for frame in (panel, fit.noise_int(), fit.tidy(), fit.tidy("eigenvalues"), fit.glance()):
        assert len(frame) > 0
    if fit.call.scale != "sd":
        fit.conf_int()
    fit.to_xarray()


@contextmanager
def silence() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert not caught, f"a warning was given: {caught[0].message}"


def odd_rows_pass_in_silence(case: Case, odd: dict[str, Any]) -> None:
    for scale in ("range", "sd"):
        with silence():
            fit = case.fit(ODD_FORMULA, PLAIN | odd, ODD_BOOK, scale=scale)
            finite_and_printable(fit)


def any_budget_and_width_pass_in_silence(case: Case, columns: int, budgets: list[Any]) -> None:
    names = [f"x{i}" for i in range(columns)]
    book = dp.codebook.uniform(names, (0, 1))
    data = dict(zip(names, np.random.default_rng(0).random((columns, 30)), strict=True))
    for budget in budgets:
        with silence():
            fit = case.fit("~ .", data, book, budget=budget)
            assert fit.loadings.shape == (columns, columns)
            finite_and_printable(fit)


def odd_declarations_pass_in_silence(case: Case, book: dp.Codebook, **words: Any) -> None:
    """Rows at the ends of odd ranges, and far outside them."""
    ends = [end for variable in book.values() for end in (variable.lower, variable.upper)]
    data = {name: [*ends, 0.0, 1.0, -1e300, 1e-300] for name in book}
    with silence():
        finite_and_printable(case.fit("~ a * b", data, book, **words))
