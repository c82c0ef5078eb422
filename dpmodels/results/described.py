"""Released counts by table: what every description reads its release by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.inference.means import GroupMoments
from dpmodels.inference.ratios import Noise
from dpmodels.postprocess.totals import balanced
from dpmodels.released import CountsRelease, QuantilesRelease
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.typing import Floats


class Counted(NamedTuple):
    """One table of a release."""

    parts: Floats  # shape (cells, degree + 1): noisy, agreeing with the public number of rows
    incomplete: float  # noisy number of incomplete rows
    incomplete_sd: float
    noise: Noise  # of each part

    @property
    def moments(self) -> GroupMoments:
        """The same as moments by group."""
        return GroupMoments(self.parts, self.noise)


def counted(call: DescribedCall, release: CountsRelease) -> Counted:
    """Read the one table of a release, made to agree with the number of rows where public."""
    (facts,) = call.tables
    values = balanced(release.values, release.rows)
    shared = 0 if release.rows is None else facts.size
    noise = Noise(release.law, release.noise_sd, shared, release.step, release.paired)
    ones = np.ones((1, facts.degree + 1 if release.paired else 1))
    sd = float(np.sqrt(noise.product(ones, ones)[0]))
    parts = values[:-1].reshape(facts.cells, facts.degree + 1)
    return Counted(parts, float(values[-1]), sd, noise)


def taken(
    call: DescribedCall, release: CountsRelease, number: int
) -> tuple[DescribedCall, CountsRelease]:
    """Take one table out of a release, as if it alone had been asked for."""
    start = sum(table.size for table in call.tables[:number])
    facts = call.tables[number]
    values = release.values[start : start + facts.size]
    return replace(call, tables=(facts,)), replace(release, values=values)


def interval_frame(facts: TableCall, ends: tuple[Floats, Floats]) -> pd.DataFrame:
    """Label the ends of intervals by group."""
    return pd.DataFrame({"lower": ends[0], "upper": ends[1]}, index=facts.index)


def interval_columns(noise: pd.DataFrame, population: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of a tidy table that hold 95 % intervals."""
    return {
        "noise_low": noise["lower"],
        "noise_high": noise["upper"],
        "conf_low": population["lower"],
        "conf_high": population["upper"],
    }


def described_line(
    release: CountsRelease | QuantilesRelease, complete: float, groups: int
) -> dict[str, Any]:
    """Return what a one-row table says of a description."""
    rows = np.nan if release.rows is None else release.rows
    return {"nobs": rows, "ncomplete": complete, "ngroups": groups}
