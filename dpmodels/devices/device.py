"""Randomised-response devices: how a respondent randomises an answer, and its privacy loss."""

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
    """How one question is answered: a coin asks for the truth, otherwise a die gives the answer.

    Made by :func:`dpmodels.randomized_response`.

    Attributes
    ----------
    levels : tuple
        The possible answers.
    how : str
        A description of the device.
    law : tuple of Fraction
        Probabilities of the die, one for each level.
    share : Fraction or None
        Probability that the coin asks for the truth; None if it follows from `stated`.
    stated : Fraction or None
        The eps of a device that treats all levels alike.
    """

    levels: tuple[Level, ...]
    how: str
    law: tuple[Fraction, ...]
    share: Fraction | None
    stated: Fraction | None = None

    @property
    def truth(self) -> float:
        """Probability that the coin asks for the truth."""
        if self.share is None:
            assert self.stated is not None
            return truth_of(float(self.stated), len(self.levels))
        return float(self.share)

    @property
    def eps(self) -> float:
        """Largest privacy loss of an answer, over all true answers."""
        if self.stated is not None:
            return float(self.stated)
        return device_loss(self.truth, float(min(self.law)))

    @property
    def lie(self) -> float:
        """Largest probability, over the levels, that an answer is not the truth."""
        return (1 - self.truth) * (1 - float(min(self.law)))

    @property
    def channel(self) -> Channel:
        """The device as plain numbers."""
        return Channel(self.truth, tuple(map(float, self.law)), self.eps, self.how)

    @cached_property
    def matrix(self) -> pd.DataFrame:
        """Probabilities of answers (rows) given the truth (columns); columns add up to 1."""
        answers = pd.Index(self.levels, name="answer", dtype=object)
        truths = pd.Index(self.levels, name="truth", dtype=object)
        return pd.DataFrame(matrix([self.channel]), answers, truths)

    def randomize(self, values: Any) -> object:
        """Randomise true answers with exact coins; run it where the truth is known.

        Parameters
        ----------
        values : level, or sequence of levels
            True values. The die alone answers for a value that is missing or not a level of the
            device, which is then as private as any level.

        Returns
        -------
        level, Series or ndarray
            An answer for each, of the same kind; a Series for a Series.

        Raises
        ------
        ArgumentError
            For a table, or an array that is not one-dimensional: each question has its own device.

        Notes
        -----
        Randomising the same truth twice doubles the privacy loss: keep the first answer.
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
        """Plot the privacy loss against the probability of lying, with this device marked.

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
        note = "The guarantee holds only if each respondent uses the device before answering."
        return Summary(Report("Randomized response", facts, (section,), (note,)))

    def __repr__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def places_of(
    levels: tuple[Level, ...], values: Iterable[object]
) -> tuple[Integers, pd.Index | None]:
    """Return the positions of values among levels, -1 for other values, and their index.

    ArgumentError for a table or anything else that is not a sequence of values.
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
    """Return the position of a level, -1 for any other value."""
    try:
        return code_of.get(value, -1)
    except TypeError:
        return -1
