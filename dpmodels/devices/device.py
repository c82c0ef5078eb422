"""A device: what a respondent does before answering, and what an answer then tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError
from dpmodels.levels import Level
from dpmodels.noise import source
from dpmodels.noise.finite import rational, responses, truthful
from dpmodels.postprocess.response import device_loss, matrix, truth_of
from dpmodels.released import Channel
from dpmodels.report import Report, Row, Section, Summary, signif
from dpmodels.typing import Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class Device:
    """How one question is answered: a coin asks for the truth, or else a die says the answer.

    Made by :func:`dpmodels.randomized_response`.

    Attributes
    ----------
    levels : tuple
        The answers there are.
    how : str
        The device in words.
    law : tuple of Fraction
        What the die says, one probability a level.
    share : Fraction or None
        How often the coin asks for the truth; None where it follows from `stated`.
    stated : Fraction or None
        The eps that all levels share alike.
    """

    levels: tuple[Level, ...]
    how: str
    law: tuple[Fraction, ...]
    share: Fraction | None
    stated: Fraction | None = None

    @property
    def truth(self) -> float:
        """How often the coin asks for the truth."""
        if self.share is None:
            assert self.stated is not None
            return truth_of(float(self.stated), len(self.levels))
        return float(self.share)

    @property
    def eps(self) -> float:
        """What an answer costs the respondent at the most, whatever the truth."""
        if self.stated is not None:
            return float(self.stated)
        return device_loss(self.truth, float(min(self.law)))

    @property
    def lie(self) -> float:
        """Probability that an answer is not the truth: the largest, over the levels."""
        return (1 - self.truth) * (1 - float(min(self.law)))

    @property
    def channel(self) -> Channel:
        """The same as plain numbers."""
        return Channel(self.truth, tuple(map(float, self.law)), self.eps, self.how)

    @cached_property
    def matrix(self) -> pd.DataFrame:
        """Probabilities of answers (rows) given the truth (columns); columns add up to 1."""
        answers = pd.Index(self.levels, name="answer", dtype=object)
        truths = pd.Index(self.levels, name="truth", dtype=object)
        return pd.DataFrame(matrix([self.channel]), answers, truths)

    def randomize(self, values: Any) -> object:
        """Answer by the device, with coins of an exact law; to be run where the truth is known.

        Parameters
        ----------
        values : level, or sequence of levels
            True values. One that is no level of the device, or missing, is answered by the die
            alone: that it is none stays as private as any level.

        Returns
        -------
        level, Series or ndarray
            An answer for each, of the same kind; a Series for a Series.

        Raises
        ------
        ArgumentError
            For a table, or an array of other than one axis: each question has a device of its own.

        Notes
        -----
        Whoever asks for the same truth twice pays twice: keep the first answer.
        """
        single = isinstance(values, str) or not isinstance(values, Iterable)
        truths, _ = places_of(self.levels, [values] if single else values)
        answers = np.empty(len(truths), dtype=object)
        answers[:] = [
            self.levels[code] for code in responses(truths, self._coin, self.law, source())
        ]
        if single:
            return answers[0]
        if isinstance(values, pd.Series):
            return pd.Series(answers, values.index, name=values.name)
        return answers

    @property
    def _coin(self) -> Any:
        if self.share is None:
            assert self.stated is not None
            return partial(truthful, self.stated, len(self.levels))
        return partial(rational, self.share)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the privacy loss against the probability of lying, with this device marked.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        from dpmodels.plots.points import response

        return response(self.lie, self.eps, len(self.levels), self.how, ax=ax)

    def summary(self) -> Summary:
        """Return the printed device."""
        names = tuple(map(str, self.levels))
        cells = self.matrix.to_numpy()
        rows = tuple(
            Row(name, tuple(signif(probability, 4) for probability in probabilities))
            for name, probabilities in zip(names, cells.tolist(), strict=True)
        )
        truth_rate = f"{signif(self.truth, 4)} of the time"
        facts = (
            ("Device", self.how),
            ("Guarantee", f"eps = {self.eps:.4g} for each answer, local"),
            ("Truth asked for", truth_rate),
            ("Lying", f"at most {signif(self.lie, 4)}"),
        )
        section = Section("answer, by truth", names, rows)
        note = "The guarantee rests on the device being used, by each respondent, before answering."
        return Summary(Report("Randomized response", facts, (section,), (note,)))

    def __repr__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def places_of(
    levels: tuple[Level, ...], values: Iterable[object]
) -> tuple[Integers, pd.Index | None]:
    """Return the places of values among levels, -1 of what is none, and their index.

    ArgumentError for a table, and whatever else is no sequence of values.
    """
    is_flat = isinstance(values, Iterable) and getattr(values, "ndim", 1) == 1
    if not is_flat or isinstance(values, Mapping | bytes):
        raise ArgumentError(
            f"values of type {type(values).__name__}: expected one column of true values, such as "
            "rows['drug']"
        )
    code_of = {level: code for code, level in enumerate(levels)}
    codes = np.array([_place(code_of, value) for value in values], dtype=np.int64)
    return codes, values.index if isinstance(values, pd.Series) else None


def _place(code_of: dict[Level, int], value: Any) -> int:
    """Return the place of a level, -1 of what is none."""
    try:
        return code_of.get(value, -1)
    except TypeError:
        return -1
