"""What a release will identify, predicted from public facts: one predictor for the whole package.

Warnings, ``dp.power``, ``dp.plan``, ``dp.compare_mechanisms`` and ``fit.at_budgets()`` use it. It
knows a law for some mechanisms (:mod:`dpmodels.models.assumed_rows`); for the others it runs the
verb's mechanism and inference on assumed rows, stored once with how often each occurs, so the time
does not depend on their number. No private row is read, and no ledger is charged.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpmodels import errors
from dpmodels.design.bound_rows import BoundRows
from dpmodels.design.parts import SampledPlaces
from dpmodels.frames.progress import as_one_of_many
from dpmodels.mechanisms.user_supplied import UserSupplied
from dpmodels.models.assumed_rows import (
    DELTA,
    LARGEST_FACTOR,
    AssumedRows,
    DrawnRows,
    Prediction,
    assumed_rows,
    enlarged,
    public_part,
    two_digits,
)
from dpmodels.models.verb_spec import Planned, VerbSpec, of_question, planned
from dpmodels.noise import simulating, simulation, source
from dpmodels.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from dpmodels.request import Request
from dpmodels.results.base import Result, noise_at_budgets
from dpmodels.results.call import INTERCEPT
from dpmodels.results.pca import PCAResult
from dpmodels.sites import Parties, parties, together
from dpmodels.verbs import VERBS

SEED: Final = 20_260_317  # Arbitrary: every prediction draws the same noise
# Choices: assumed rows that are stored, and releases of a prediction and of a warning.
BLOCK: Final = 1_024
# The largest number of rows for which a result predicts its noise at other budgets: a choice.
MOST_ROWS: Final = 100_000_000
# Assumed rows with weights that are stored, and how many weights they have: choices.
MOST_WEIGHTED, DISTINCT_WEIGHTS = 100_000, 30
FITS: Final = 8
FITS_BEFORE_WARNING: Final = 3
# A warning assumes rows that fill less of their bounds than those of a plan, so that few futile
# calls are missed; below the first share nothing is identified, above the second most is: choices.
CAUTIOUS: Final = "tails"
NOTHING, MOST = 0.05, 0.5
# How often a suggested number of rows is doubled.
DOUBLINGS: Final = int(math.log2(LARGEST_FACTOR))
# Of as many calls it is remembered what they will identify: a choice.
REMEMBERED: Final = 1_000
_remembered: dict[tuple[object, ...], bool] = {}
MEASURES: Final = ("estimate", "std_error", "noise_sd", "identified")
ASSUMED: Final = (
    "numbers have a standard deviation of a twelfth of their range and levels are equally common"
)


def identified_share(table: pd.DataFrame) -> float:
    """Return the share of identified estimates, without intercepts; nan if it is not known."""
    is_intercept = [INTERCEPT in str(label) for label in table.index]
    share = table["identified"].to_numpy()[~np.array(is_intercept, dtype=bool)]
    finite = share[np.isfinite(share)]
    return float(finite.mean()) if finite.size else math.nan


def estimates_of(fit: Any, level: float = 0.95) -> pd.DataFrame:
    """Return the numbers of a result by which it is predicted, one row per estimate.

    `MEASURES`; ``conf_low, conf_high`` of a level; ``rows``, which counts are shares of, and 1 for
    other estimates. Errors that a result does not print are those that its intervals imply.
    """
    of_components = isinstance(fit, PCAResult)
    estimates = fit._eigenvalues() if of_components else fit.estimates
    table = estimates.tidy(level)
    names = (*MEASURES, "conf_low", "conf_high")
    columns = {name: table[name].to_numpy(np.float64, na_value=np.nan) for name in names}
    for name, kind in {"std_error": "conf", "noise_sd": "noise"}.items():
        implied = (table[f"{kind}_high"] - table[f"{kind}_low"]) / (2 * ndtri((1 + level) / 2))
        columns[name] = np.where(np.isnan(columns[name]), implied, columns[name])
    columns["rows"] = np.ones(len(table))
    if "proportion" in table:
        counted = table["proportion"].notna()
        rows = (table["estimate"] / table["proportion"])[table["proportion"] > 0]
        columns["rows"][counted] = rows.reindex(table.index).fillna(rows.median())[counted]
    if of_components:
        columns["identified"] = fit.spectrum.distinct[: len(table)].astype(np.float64)
    rows = table[list(estimates.keys)].itertuples(index=False)
    labels = [
        ", ".join(f"{x:.6g}" if isinstance(x, float) else str(x) for x in row if not pd.isna(x))
        for row in rows
    ]
    return pd.DataFrame(columns, index=pd.Index(labels, name="estimate"))


def assumed_private(
    spec: VerbSpec[object], n_rows: int, assumed: AssumedRows | str = "normal"
) -> object:
    """Return a verb's private side, bound to `n_rows` assumed rows.

    Those that take places by weight are stored one by one. NotAvailable for too many of them.
    """
    terms = spec.private.rows.terms
    rows = assumed if isinstance(assumed, AssumedRows) else assumed_rows(terms.codebook, assumed)
    if terms.sampled is not None or rows.unit is not None:
        return spec.private.bind(_assumed_sample(rows, terms.sampled, n_rows))
    part = public_part(rows.rows(min(n_rows, BLOCK)), terms)
    times = n_rows // part.rows + (np.arange(part.rows) < n_rows % part.rows)
    return spec.private.of(DrawnRows(part._replace(places=times), terms))


def _assumed_sample(rows: AssumedRows, sampled: SampledPlaces | None, n_rows: int) -> pd.DataFrame:
    """Return assumed rows of a survey design, with few distinct weights where they take places."""
    if n_rows > MOST_WEIGHTED:
        raise errors.NotAvailable(
            "regressions and sampling units under a survey design are predicted for up to "
            f"{MOST_WEIGHTED:,} rows or units"
        )
    frame = rows.rows(n_rows)
    if sampled is not None and sampled.sampling.design.weights is not None:
        # Rows of one weight are read as one block.
        name, upper = sampled.sampling.design.weights, sampled.sampling.upper
        step = upper / DISTINCT_WEIGHTS
        weights = step * np.ceil(frame[name].to_numpy(np.float64) / step - 1e-9)
        frame[name] = np.minimum(weights, upper)
    return frame


def simulated_fits(
    spec: VerbSpec[object], choice: Planned, private: object, times: int, seed: int = SEED
) -> Iterator[object]:
    """Release `times` times from assumed rows, with noise that is the same at every call."""
    for number in range(times):
        # No yield inside: the seeded stream must never reach what the caller does in between.
        with simulation(seed=seed + number), as_one_of_many():
            statistic = choice.strategy.measure(private, choice.plan)
            release = choice.strategy.release(statistic, choice.plan, source())
            fit = spec.of(of_question(release, spec.request), "", choice.reason)
        yield fit


def predict(
    spec: VerbSpec[object],
    choice: Planned,
    n_rows: int,
    assumed: AssumedRows | str = "normal",
    times: int = FITS,
) -> pd.DataFrame:
    """Predict a verb's estimates, one a row.

    `MEASURES`: medians over simulated releases, nan where fewer than half have one, and the
    expected share of releases that identify it.
    """
    private = assumed_private(spec, n_rows, assumed)
    tables = [estimates_of(fit) for fit in simulated_fits(spec, choice, private, times)]
    labels = max(tables, key=len).index
    stacked = np.stack([table.reindex(labels)[list(MEASURES)].to_numpy() for table in tables])
    missing = np.isnan(stacked).mean(axis=0) > 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        middle = np.where(missing, np.nan, np.nanmedian(stacked, axis=0))
        middle[:, -1] = np.nanmean(stacked[:, :, -1], axis=0)
    return pd.DataFrame(middle, labels, list(MEASURES))


# Warnings before the charge.


def warn_if_futile(
    spec: VerbSpec[object], holders: Parties, choice: Planned, private: Sequence[BoundRows]
) -> None:
    """Warn, at the user's line, if very likely nothing will be identified.

    Never from a private number of rows: not for persons, whose number is only known after reading,
    nor of a survey design, nor in a simulation, nor where other sites have rows.

    A law decides where one is known and its answer is clear; else releases of assumed rows do,
    unless sites make the release together or the mechanism is a user's.
    """
    relation = spec.reads or spec.request.adjacency
    unknown = (not relation.n_public, relation.person is not None, holders.others)
    if any(unknown) or simulating() or spec.sampling is not None:
        return
    n_rows = together(source.nrows for source in private)
    if n_rows is None:
        return
    prediction = spec.law(choice.plan, n_rows)
    is_clear = prediction is not None and (prediction.lost or prediction.clear)
    is_simulated = holders.protocol is None and not isinstance(choice.strategy, UserSupplied)
    if is_simulated and not is_clear:
        prediction = _simulated(spec, choice, n_rows)
    if prediction is not None and prediction.lost:
        _warn(prediction, spec, choice, n_rows)


def _simulated(spec: VerbSpec[object], choice: Planned, n_rows: int) -> Prediction | None:
    """Return by how many more rows most would be identified; None if these rows identify some."""
    try:
        if n_rows == 0 or _identifies(spec, choice, n_rows, NOTHING):
            return None
        doubled = bisect_left(
            range(1, DOUBLINGS + 1),
            True,
            key=lambda times: _identifies(spec, choice, n_rows * 2**times, MOST),
        )
    except Exception:  # A prediction never stops a call
        return None
    factor = 2.0 ** (doubled + 1)
    return Prediction(1.0, 2.0, factor, "nothing will be identified", ASSUMED)


def _identifies(spec: VerbSpec[object], choice: Planned, n_rows: int, share: float) -> bool:
    """Whether more than a share of estimates is expected to be identified.

    It is remembered, as calls are repeated: a request decides its mechanism's plan.
    """
    codebook, options = spec.request.codebook, {**vars(spec.request), "codebook": None}
    facts = (codebook, repr(options), repr(choice.strategy), n_rows, share)
    suffices = _remembered.get(facts)
    if suffices is None:
        if len(_remembered) >= REMEMBERED:
            _remembered.clear()
        suffices = _remembered[facts] = _simulations_identify(spec, choice, n_rows, share)
    return suffices


def _simulations_identify(
    spec: VerbSpec[object], choice: Planned, n_rows: int, share: float
) -> bool:
    private, total = assumed_private(spec, n_rows, CAUTIOUS), 0.0
    for fit in simulated_fits(spec, choice, private, FITS_BEFORE_WARNING):
        if isinstance(fit, PCAResult):  # Intervals take longer than all else
            identified = float(fit.spectrum.distinct[: fit.ncomp].mean())
        else:
            identified = identified_share(estimates_of(fit))
        total += 1.0 if math.isnan(identified) else identified
        if total > share * FITS_BEFORE_WARNING:
            return True
    return False


def _delta_suffices(spec: VerbSpec[object], choice: Planned, n_rows: int) -> bool:
    """Whether a small delta at the same eps, and the mechanism chosen then, identifies most."""
    guarantee = spec.request.guarantee
    if not isinstance(guarantee, PureDP) or not choice.reason:
        return False
    try:
        if _identifies(spec, choice, n_rows, NOTHING):  # What is lacking is something else
            return False
        wider = _spec_at(spec.request, ApproxDP(guarantee.eps, DELTA))
        chosen = planned(wider, parties({}), "auto", [assumed_private(wider, n_rows)])
        return _identifies(wider, chosen, n_rows, MOST)
    except Exception:  # As above
        return False


def _spec_at(request: Request, guarantee: Guarantee) -> VerbSpec[object]:
    verb = VERBS[request.verb]
    options = {**verb.options, **request.options}
    spec: VerbSpec[object] = verb.spec(replace(request, guarantee=guarantee, options=options))
    return spec


def _warn(prediction: Prediction, spec: VerbSpec[object], choice: Planned, n_rows: int) -> None:
    request, factor = spec.request, prediction.clear_from / prediction.strength
    with_delta = prediction.with_delta or _delta_suffices(spec, choice, n_rows)
    hints = [f"delta = {DELTA:g}"] * with_delta
    if factor <= LARGEST_FACTOR:
        less_noise = factor ** (1 / prediction.in_noise)
        budget = enlarged(request.private, choice.plan.events, less_noise).describe()
        hints += [f"about {budget}", f"n = {round(two_digits(n_rows * factor)):,}"]
    else:
        hints.append(f"more than {LARGEST_FACTOR:,.0f} times as many rows")
    text = (
        f"dp_{request.verb}({errors.shorten(request.formula)!r}): very likely {prediction.lacking} "
        f"at {request.guarantee.describe()} with n = {n_rows:,}: {', or '.join(hints)} would be "
        f"needed if {prediction.assumption}. Nothing is charged yet: see dp.errors.BudgetWarning "
        "to stop before the charge, or to silence this."
    )
    errors.warn(text, errors.BudgetWarning)


# What other budgets would buy.


@noise_at_budgets.register
def predicted_at_budgets(fit: Result) -> pd.DataFrame:
    """Predict the noise of a fit's estimates at other budgets, from public facts."""
    request, n_rows = fit.request, fit.nobs
    verb = None if request is None or request.parent is not None else VERBS.get(request.verb)
    is_known = verb is not None and verb.charges and n_rows >= 1
    is_known &= request is None or request.adjacency.person == _sampling_unit(request)
    if request is None or not is_known:
        raise errors.NotAvailable(
            "at_budgets() needs a result of one call, a public number of rows, and one row a "
            "person; dp.plan() predicts others"
        )
    if n_rows > MOST_ROWS:  # As noise may make a private number of rows
        raise errors.NotAvailable(f"at_budgets() predicts for up to {MOST_ROWS:,} rows")
    mechanism = "auto" if fit.call.reason else fit.release.info.name
    predictions = {
        guarantee.describe(): _noise(_spec_at(request, guarantee), mechanism, int(n_rows))
        for guarantee in _other_budgets(request.private)
    }
    table = pd.DataFrame(predictions)
    released = estimates_of(fit)["noise_sd"].reindex(table.index)
    scale = released / table.iloc[:, 0]
    return table.mul(scale.fillna(scale.median()).fillna(1.0), axis=0)


def _sampling_unit(request: Request) -> str | None:
    design = request.codebook.design
    psu = None if design is None else design.psu
    return psu if psu == request.adjacency.person else None


def _other_budgets(guarantee: Guarantee) -> list[Guarantee]:
    parts = (1, 0.5, 2)
    if isinstance(guarantee, ZCDP):
        return [ZCDP(guarantee.rho * part) for part in parts]
    budgets: list[Guarantee] = [replace(guarantee, eps=guarantee.eps * part) for part in parts]
    return budgets + [ApproxDP(guarantee.eps, DELTA)] * isinstance(guarantee, PureDP)


def _noise(spec: VerbSpec[object], mechanism: object, n_rows: int) -> pd.Series[float]:
    try:
        codebook = spec.private.rows.terms.codebook
        assumed = replace(assumed_rows(codebook), unit=_sampling_unit(spec.request))
        private = assumed_private(spec, n_rows, assumed)
        choice = planned(spec, parties({}), mechanism, [private])
        return predict(spec, choice, n_rows, assumed)["noise_sd"]
    except errors.BudgetError:  # Too little for this mechanism
        return pd.Series(dtype=np.float64)
    except errors.DPModelsError as error:
        raise errors.NotAvailable(f"at_budgets() is not available: {error}") from None
