"""Released counts by table, and what every report on them says."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpmodels.inference.means import GroupMoments
from dpmodels.inference.ratios import TOLD, Noise
from dpmodels.postprocess.totals import balanced
from dpmodels.privacy import ApproxDP
from dpmodels.released import (
    CountsRelease,
    QuantilesRelease,
    release_facts,
    shared_facts,
    shared_notes,
    unused_delta,
)
from dpmodels.report import count, signif
from dpmodels.results.described_call import DescribedCall, TableFacts
from dpmodels.results.header import release_row
from dpmodels.typing import Floats


class Counted(NamedTuple):
    """One table of a release.

    Attributes
    ----------
    parts : ndarray, shape (cells, degree + 1)
        Noisy parts of the rows, which agree with the public number of rows.
    incomplete : float
        Noisy number of incomplete rows.
    incomplete_sd : float
        Its noise standard deviation.
    noise : Noise
        Of each part.
    """

    parts: Floats
    incomplete: float
    incomplete_sd: float
    noise: Noise

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


def interval_frame(facts: TableFacts, ends: tuple[Floats, Floats]) -> pd.DataFrame:
    """Label the ends of intervals by group."""
    return pd.DataFrame({"lower": ends[0], "upper": ends[1]}, index=facts.index)


def described_header(
    call: DescribedCall, release: CountsRelease | QuantilesRelease, complete: str
) -> tuple[tuple[str, str], ...]:
    """Return the facts of the header of a description.

    Parameters
    ----------
    call, release : DescribedCall, CountsRelease or QuantilesRelease
        What was asked and what was released.
    complete : str
        What is known of the number of complete rows.
    """
    said = release_facts(release)
    return (
        ("Formula", call.formula),
        ("Guarantee", said["Guarantee"]),
        ("Mechanism", said["Mechanism"]),
        ("Neighbours", said["Neighbours"]),
        ("Observations", "private" if release.rows is None else f"{count(release.rows)} (public)"),
        ("Ledger", call.ledger or "none"),
        ("Complete", complete),
        *shared_facts(release),
    )


def complete_text(complete: float, sd: float) -> str:
    """Say how many rows are complete, where that is told from none."""
    if complete < TOLD * sd:
        return f"not told from 0 rows (noise sd {signif(sd, 2)})"
    return f"{count(complete)} rows (noise sd {signif(sd, 2)})"


def described_notes(
    call: DescribedCall, release: CountsRelease | QuantilesRelease
) -> tuple[str, ...]:
    """Return the notes that every report on a description ends with."""
    guarantee, card = release.guarantee, release.card
    notes = list(unused_delta(release))
    rows = 0 if release.rows is None else release.rows
    if not notes and isinstance(guarantee, ApproxDP) and guarantee.delta * max(rows, 1) > 0.1:
        notes.append("delta is not small against 1/n: it allows for the disclosure of single rows.")
    notes.extend(shared_notes(release))
    if call.reason:
        notes.append(f"Mechanism chosen automatically: {call.reason}")
    notes.append(f"Source: {card.name}, {card.source}.")
    return tuple(notes)


def range_note(facts: TableFacts) -> tuple[str, ...]:
    """Say what was done with values outside the declared range, unless they are 0 or 1."""
    if (facts.lower, facts.upper) == (0.0, 1.0):
        return ()
    return (
        f"{facts.measured}: values outside {facts.lower:,.10g} to {facts.upper:,.10g} were clipped "
        "to it; no interval knows of that.",
    )


def described_glance(
    call: DescribedCall, release: CountsRelease | QuantilesRelease, complete: float, groups: int
) -> pd.DataFrame:
    """Return one row about a description."""
    rows = np.nan if release.rows is None else release.rows
    row = {"nobs": rows, "ncomplete": complete, "ngroups": groups}
    return pd.DataFrame([{**row, **release_row(release)}])
