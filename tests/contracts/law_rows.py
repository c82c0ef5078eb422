"""No row, however odd, makes an exception or a warning; the table always prints."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import shown
import verbs_descriptions
import verbs_models
from contract_cases import Case, table
from verbs_models import ODD_FORMULA

import dpmodels as dp
from dpmodels.errors import BudgetError, BudgetWarning
from dpmodels.inference import Spectrum
from dpmodels.privacy import total_eps
from dpmodels.results import CovResult, PCAResult, SubspaceResult

ODD_BOOK = dp.codebook(a=(-1, 1), b=(0, 10), g=dp.Categorical(["u", "v", "w"], ordered=True))
PLAIN = {"a": [0.5] * 4, "b": [2.0] * 4, "g": ["u"] * 4}


def finite_and_printable(fit: PCAResult | SubspaceResult) -> None:
    if isinstance(fit, SubspaceResult):
        _directions(fit)
    else:
        _moments(fit)
    summary = fit.summary()
    for text in (summary.as_text(), summary.as_html(), summary.as_latex(), summary.as_markdown()):
        assert "PC1" in text or "Directions are not printed" in text
    assert type(fit).__name__ in repr(fit)
    fit.to_xarray()


def finite_covariance(fit: CovResult) -> None:
    for values in (fit.cov, fit.cov_released, fit.cor, fit.sd, fit.nobs, fit.ncomplete):
        assert np.isfinite(values).all()
    summary = fit.summary()
    for text in (summary.as_text(), summary.as_html(), summary.as_latex(), summary.as_markdown()):
        assert "orrelation" in text or "ovariance" in text
    assert "CovResult" in repr(fit)
    assert len(fit.tidy()) > 0
    assert len(fit.glance()) > 0
    fit.to_xarray()


def _moments(fit: PCAResult) -> None:
    release, panel = fit.release, fit.noise()
    released = [release.count, release.second, fit.loadings, fit.eigenvals, fit.sdev, fit.cov]
    released += [part for part in (release.total, release.estimate) if part is not None]
    if isinstance(fit.spectrum, Spectrum):
        released += [panel["eigenvalue"], panel["noise_sd"], fit.noise_sd, fit.noise_floor]
    for values in (*released, fit.nobs, fit.ncomplete):
        assert np.isfinite(values).all()
    for frame in (panel, fit.noise_int(), fit.tidy(), fit.tidy("eigenvalues"), fit.glance()):
        assert len(frame) > 0
    has_drawn_scale = fit.call.center and fit.call.scale != "sd" and release.estimate is None
    if has_drawn_scale and isinstance(fit.spectrum, Spectrum):
        fit.conf_int()


def _directions(fit: SubspaceResult) -> None:
    frame = fit.release.frame
    np.testing.assert_allclose(frame.T @ frame, np.eye(frame.shape[1]), rtol=0, atol=1e-9)
    assert np.isfinite(fit.loadings).all()
    for value in (fit.tidy(), fit.glance()):
        assert len(value) > 0


def options_pass_in_silence(case: Case, odd: dict[str, Any]) -> None:
    """With each option, as without."""
    for strategy in case.mechanism.variants()[1:]:
        with silence():
            words = {"scale": "range", "ncomp": 3, "mechanism": strategy}
            finite_and_printable(case.fit(ODD_FORMULA, PLAIN | odd, ODD_BOOK, **words))


def degenerate_covariances_pass_in_silence(case: Case, odd: dict[str, Any]) -> None:
    with silence():
        finite_covariance(case.through(verbs_models.COV).fit(ODD_FORMULA, PLAIN | odd, ODD_BOOK))


@contextmanager
def silence() -> Iterator[None]:
    """Hold that no warning is given but the one that public facts alone give, before the charge."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", BudgetWarning)
        yield
    assert not caught, f"a warning was given: {caught[0].message}"


def odd_rows_pass_in_silence(
    case: Case, odd: dict[str, Any], scales: tuple[str | None, ...] = ("range", "sd")
) -> None:
    with silence():
        for scale in scales:
            fit = case.fit(ODD_FORMULA, PLAIN | odd, ODD_BOOK, scale=scale, ncomp=3)
            finite_and_printable(fit)


def _odd_words(case: Case) -> dict[str, Any]:
    """Words that name variables, of the codebook of odd rows."""
    options: dict[str, Any] = {"time": "g"} if case.verb is verbs_descriptions.SERIES else {}
    if case.verb is verbs_descriptions.SURVFIT:
        options = {"breaks": 4}
    return options | ({"weights": "b"} if case.way == "weighted" else {})


def odd_rows_of_any_verb_pass_in_silence(case: Case, odd: dict[str, Any]) -> None:
    """By every verb: every number of the result can be asked for, and its table prints."""
    plain = _odd_words(case)
    with silence():
        shown.whole_and_printable(case.fit(case.verb.odd, PLAIN | odd, ODD_BOOK, **plain))


def odd_rows_are_measured_in_silence(case: Case, odd: dict[str, Any]) -> None:
    """On their way into the statistic."""
    plain = _odd_words(case)
    with silence():
        case.crossing(case.verb.odd, PLAIN | odd, ODD_BOOK, **plain)


def any_budget_of_any_verb_passes_in_silence(case: Case, budgets: list[Any]) -> None:
    """A budget that leaves no lattice is refused; that is all that may happen."""
    data = {"a": [0.1, -0.9, 0.5] * 9, "b": [2.0, 9.0, 4.0] * 9, "g": ["u", "v", "u"] * 9}
    plain = _odd_words(case)
    for budget in budgets:
        with silence():
            try:
                fit = case.fit(case.verb.odd, data, ODD_BOOK, budget=budget, **plain)
            except BudgetError:
                continue
            shown.whole_and_printable(fit)


def any_budget_and_width_pass_in_silence(case: Case, columns: int, budgets: list[Any]) -> None:
    """A budget that leaves no lattice is refused; that is all that may happen."""
    names = [f"x{i}" for i in range(columns)]
    book = dp.codebook.uniform(names, (0, 1))
    data = dict(zip(names, np.random.default_rng(0).random((columns, 30)), strict=True))
    for budget in budgets:
        with silence():
            try:
                case.plan(columns, budget)
            except BudgetError:
                continue
            for ncomp in {1, columns}:
                fit = case.fit("~ .", data, book, budget=budget, ncomp=ncomp)
                assert fit.loadings.shape == (columns, ncomp)
                finite_and_printable(fit)


def odd_declarations_pass_in_silence(case: Case, book: dp.Codebook, **words: Any) -> None:
    """Rows at the ends of odd ranges, and far outside them."""
    ends = [end for variable in book.values() for end in (variable.lower, variable.upper)]
    data = {name: [*ends, 0.0, 1.0, -1e300, 1e-300] for name in book}
    with silence():
        finite_and_printable(case.fit("~ a * b", data, book, **words))


def all_below_the_floor_is_said(case: Case) -> None:
    """A spectrum of nothing but noise is shown as such, with no component made of it."""
    data = {"a": [0.0, 0.5], "b": [2.0, 3.0], "g": ["u", "v"]}
    # One release of noise alone in six or so has a component above the floor.
    texts = []
    for seed in (2, 3, 4):
        with dp.simulation(seed=seed):
            texts.append(case.fit("~ a + b + g", data, ODD_BOOK).summary().as_text())
    lost = [text for text in texts if "No component is above" in " ".join(text.split())]
    assert len(lost) >= 2
    text = lost[0]
    assert "Loadings" not in text
    for line in text.splitlines():
        if line.startswith(("Proportion", "Cumulative", "Debiased", "95% noise")):
            assert not any(digit in line.removeprefix("95%") for digit in "123456789"), line


def an_unused_delta_is_said(case: Case) -> None:
    """Of a pure mechanism that is given one."""
    fit = case.ask(table(40), budget=dp.ApproxDP(1.0, 1e-6))
    if total_eps(fit.release.events, 0.0) <= 1 + 1e-9:
        notes = str(fit.summary(notes="all")).rpartition("=====")[2]
        assert "delta" in notes, f"nothing is said of it: {notes}"
