"""Rescale releases that counted slots per person to units of persons.

Each person has a fixed number of slots, shared evenly by the person's rows. Dividing a sum over
slots by that number gives a sum over persons of means over their rows; noise is divided too.

*Theorem.* Rows of one person may be dependent, those of different persons are independent. Let
``f`` be any function of a row and ``f̄`` its mean over a person's rows. By Jensen's inequality
``E(f̄ - μ)² <= E(f - μ)²``, the right side for a random row of the person. So a sum over persons of
such means has at most the variance of a sum over as many independent rows, and errors that treat
persons as independent rows are never too small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from dpmodels import released


def in_persons(release: released.AnyRelease, places: int) -> released.AnyRelease:
    """Return a release with `places` slots per person, in units of persons.

    >>> import dpmodels as dp
    >>> fit = dp.dp_table("~ a", {"a": ["u", "v"] * 50}, codebook=dp.codebook(a=["u", "v"]), eps=1)
    >>> in_persons(fit.release, 20).rows, in_persons(fit.release, 2).step
    (5, 0.5)
    """
    replacements: dict[str, object] = {}
    match release:
        case released.MomentsRelease(noise=noise, meat=meat, tails=tails, ball=ball):
            replacements = {"noise": _divided(noise, places), "meat": _meat(meat, places)}
            replacements["ball"] = ball and replace(ball, rows=ball.rows / places)
            replacements["tails"] = tails and _divided(tails, places)
        case released.CoefficientsRelease(curvature=curvature, tuning=tuning, meat=meat):
            replacements = {"curvature": _curvature(curvature, places)}
            replacements["meat"] = _meat(meat, places)
            replacements["tuning"] = tuning and _divided(tuning, places)
        case released.CountsRelease(weights=weights) if weights is not None:
            replacements = {"weights": _divided(weights, places)}
    n_rows = None if release.rows is None else release.rows // places
    scaled: released.AnyRelease = replace(_divided(release, places), rows=n_rows, **replacements)
    return scaled


# By kind of release the fields that are sums over rows, or in units of such sums.
_SUMS: Final[Mapping[type, tuple[str, ...]]] = {
    released.MomentsRelease: ("count", "total", "second", "estimate"),
    released.SubspaceRelease: ("count", "variances", "variance_sd", "expected_loss"),
    released.CoefficientsRelease: ("ridge", "gradient", "gradient_sd"),
    released.CountsRelease: ("values", "noise_sd", "step"),
    released.CappedWeights: ("capped", "capped_sd", "by_stratum", "by_stratum_sd"),
    released.MarginsRelease: ("values", "noise_sds"),
    released.GraphRelease: ("values", "histograms", "histogram_sd", "noise_sds"),
    released.SumsRelease: ("values", "noise_sd", "step"),
    released.RunsRelease: ("values", "noise_sd", "noise_sds", "step"),
    released.QuantilesRelease: ("counts", "count_sd", "rank_sd"),
    released.CellsRelease: ("values", "noise_sds"),
    released.ScreenedRelease: (
        *("products", "scatters", "count", "total", "squares"),
        *("product_sd", "scatter_sd", "response_sd"),
    ),
    released.PValuesRelease: ("count", "total", "squares", "response_sd", "scale"),
    # Integers, whose noise has steps of one slot: the result class divides them.
    released.LevelsRelease: (),
    # One answer per slot: the result class divides them.
    released.AnswersRelease: (),
    released.SelectionRelease: (
        *("values", "scatters", "response"),
        *("noise_sd", "step", "scale", "count"),
    ),
    released.MomentNoise: ("count", "mean", "diagonal", "off"),
    released.BoughtCurvature: ("bread", "meat", "first", "score", "score_sd"),
    released.Tails: ("fourth", "fourth_sd", "beyond", "beyond_sd"),
    released.Tuning: ("told_apart", "ridges"),
}


_NOISES: Final = ("bread_noise", "meat_noise", "first_noise")


def _divided(release: Any, places: int) -> Any:
    divided = {}
    for name in _SUMS[type(release)]:
        values = getattr(release, name)
        if values is not None:
            is_tuple = isinstance(values, tuple)
            divided[name] = tuple(x / places for x in values) if is_tuple else values / places
    return replace(release, **divided)


def _meat(meat: released.Meat | None, places: int) -> released.Meat | None:
    """Divide the covariance of the sum of scores, through its root.

    For rows it is that of independent rows; a person's score is itself a sum.
    """
    if meat is None:
        return None
    divisor = places if meat.person is not None else math.sqrt(places)
    return replace(meat, root=meat.root / divisor)


def _curvature(
    curvature: released.BoughtCurvature | None, places: int
) -> released.BoughtCurvature | None:
    if curvature is None:
        return None
    laws = {name: getattr(curvature, name) for name in _NOISES}
    noises = {name: _divided(law, places) for name, law in laws.items() if law is not None}
    scaled: released.BoughtCurvature = replace(_divided(curvature, places), **noises)
    if curvature.person is None:
        return scaled
    # Squares of sums over slots are divided twice.
    noise = _divided(scaled.meat_noise, places)
    return replace(scaled, meat=scaled.meat / places, meat_noise=noise)
