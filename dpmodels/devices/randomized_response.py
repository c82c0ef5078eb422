"""Devices with which respondents randomise their answers: their privacy loss, and how to make one.

Theorem
    Of ``unary_response``, a yes or no to each level: the bit of the truth is set with probability
    1/2, each other with ``r = 1/(e^ε + 1)``, independently. Truths j and l differ in two bits,
    whose answers have the ratio ``(1/2)/r`` times ``(1 - r)/(1/2)`` at most, which is e^ε. A
    respondent without a truth sets all bits with probability r, and differs in one bit from one
    with a truth: the ratios ``(e^ε + 1)/2`` and ``2 e^ε/(e^ε + 1)`` are smaller.
Numerics
    exact: coins with exact probabilities.
Source
    Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
    estimation", USENIX Security: the least variance of rare levels, ``4 e^ε/(n (e^ε - 1)²)``, below
    that of one answer of k levels where ``k > 3 e^ε + 2``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from numbers import Rational
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpmodels.arguments import checked_keywords, integer, real
from dpmodels.errors import ArgumentError, BudgetError, quoted
from dpmodels.levels import Level
from dpmodels.noise import source
from dpmodels.noise.finite import coins, lying, rational, responses, truthful
from dpmodels.postprocess.response import device_loss, matrix, truth_of
from dpmodels.released import Channel
from dpmodels.report import Report, Row, Section, Summary, signif
from dpmodels.typing import Integers
from dpmodels.variables import Categorical
from dpmodels.verbs import documented

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

    @documented
    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the privacy loss against the probability of lying, with this device marked."""
        from dpmodels.plots.coefficients import response

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


# Beyond, one lie in 5 * 10^8 answers gives no useful protection.
MOST_EPS = 20
# Below, the errors of estimates exceed a million times their range.
LEAST_EPS = 1e-6
# Faces of dice, or cards of decks.
MOST_FACES = 10**9
# Signs of a power of ten.
_POWER = 4

Chance = float | str | Fraction


@checked_keywords("dp.randomized_response")
def randomized_response(
    levels: Iterable[Level],
    *,
    eps: float | None = None,
    lie: Chance | None = None,
    dice: tuple[int, int] | None = None,
    cards: tuple[int, int] | None = None,
    truth: Chance | None = None,
    forced: Mapping[Level, Chance] | None = None,
    unrelated: Chance | None = None,
) -> Device:
    """Construct a device by which a respondent randomises an answer.

    Parameters
    ----------
    levels : sequence
        The possible answers, two or more.
    eps : float
        Privacy loss of an answer, at most 20: the truth with probability
        ``exp(eps) / (exp(eps) + k - 1)``, all other levels with equal probabilities.
    lie : float, str or Fraction
        The same device, given by the probability of an answer that is not the truth, below
        (k - 1)/k, such as ``0.27`` or ``"1/6"``: Warner's device.
    dice, cards : (int, int)
        The same device, given by a number of equally likely cases: ``dice=(1, 6)``
        lies if a die shows one of its six sides, ``cards=(13, 52)`` if a
        heart is drawn.
    truth : float, str or Fraction
        Probability with which the truth is asked for. Otherwise the answer is drawn
        from all levels with equal probabilities, unless `unrelated` is given.
    forced : mapping
        Probabilities of forced answers, whatever the truth, such
        as ``{"no": "1/6", "yes": "1/6"}``; otherwise the truth is asked for.
    unrelated : float, str or Fraction
        With `truth` and two levels: otherwise a harmless question is asked, which a
        known fraction of the population answers with the second level.

    Returns
    -------
    Device

    Raises
    ------
    ArgumentError
        If the levels or probabilities are invalid, or the answers do not depend on the truth.
    BudgetError
        If eps is not from 1e-6 to 20, or infinite: if some level is answered only by respondents
        for whom it is true.

    Notes
    -----
    Probabilities are exact fractions: ``0.1`` is 1/10. With an unrelated question the guarantee
    holds against anyone who does not know the respondent's answer to it.

    References
    ----------
    .. [1] Warner, S. L. (1965). "Randomized response." JASA 60(309), 63-69.
    .. [2] Greenberg, B. G., Abul-Ela, A.-L., Simmons, W. R. and Horvitz, D. G. (1969). "The
       unrelated question randomized response model." JASA 64(326), 520-539.
    .. [3] Fox, J. A. and Tracy, P. E. (1986). "Randomized Response." Sage.

    Examples
    --------
    >>> device = randomized_response(["no", "yes"], dice=(1, 6))
    >>> round(device.eps, 4), round(device.lie, 4)
    (1.6094, 0.1667)
    >>> device.randomize("yes") in ("no", "yes")
    True
    >>> round(randomized_response(["no", "yes"], eps=1).lie, 4)
    0.2689
    """
    checked = checked_levels(levels)
    forms = {"eps": eps, "lie": lie, "dice": dice, "cards": cards, "forced": forced}
    stated = [name for name, value in {**forms, "truth": truth}.items() if value is not None]
    if len(stated) != 1 or (unrelated is not None and stated != ["truth"]):
        listed = ", ".join(f"{name}=" for name in stated) or "nothing"
        addition = " and unrelated=" if unrelated is not None else ""
        raise ArgumentError(
            f"device given by {listed}{addition}: write one of eps=1.0, lie=0.27, dice=(1, 6), "
            'cards=(13, 52), truth=0.7, forced={"no": "1/6", "yes": "1/6"}, or truth=0.7 with '
            "unrelated=0.25"
        )
    if eps is not None:
        return _by_eps(checked, eps)
    if forced is not None:
        return _by_force(checked, forced)
    if truth is not None:
        return _by_question(checked, _chance("truth", truth), unrelated)
    for name, cases in (("dice", dice), ("cards", cards)):
        if cases is not None:
            lying, n_cases = _cases(name, cases)
            return _lying(checked, Fraction(lying, n_cases), f"{name}, lie in {lying} of {n_cases}")
    assert lie is not None
    probability = _chance("lie", lie)
    return _lying(checked, probability, f"lie with probability {float(probability):.4g}")


def checked_levels(levels: object) -> tuple[Level, ...]:
    """Return levels that a codebook could declare."""
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        raise ArgumentError(
            f'levels={quoted(levels)}: expected the possible answers, such as ["no", "yes"]'
        )
    return Categorical(tuple(levels)).levels


def checked_eps(eps: object) -> Fraction:
    """Return an eps between the bounds of useful answers and useful protection."""
    number = real(eps)
    if not LEAST_EPS <= number <= MOST_EPS:
        raise BudgetError(
            f"eps={quoted(eps)}: expected a number of at least {LEAST_EPS:g}, below which answers "
            f"carry no information, and at most {MOST_EPS}, above which they are not protected; "
            "write eps=1.0"
        )
    return Fraction(number)


def _by_eps(levels: tuple[Level, ...], eps: object) -> Device:
    law = (Fraction(1, len(levels)),) * len(levels)
    return Device(levels, "k-ary" if len(levels) > 2 else "Warner", law, None, checked_eps(eps))


def _lying(levels: tuple[Level, ...], lie: Fraction, how: str) -> Device:
    """Answer with any other level, all equally likely, with probability `lie`."""
    size = len(levels)
    law = (Fraction(1, size),) * size
    return _checked(levels, how, law, 1 - lie * size / (size - 1), f"lie={lie}")


def _by_force(levels: tuple[Level, ...], forced: object) -> Device:
    if not isinstance(forced, Mapping) or set(forced) != set(levels):
        raise ArgumentError(
            "forced=: expected the probability of each level, such as "
            f"{{{levels[0]!r}: '1/6', {levels[1]!r}: '1/6'}}"
        )
    chances = [_chance("forced", forced[level]) for level in levels]
    total = sum(chances, Fraction(0))
    if not 0 < total < 1:
        raise ArgumentError(
            f"forced=: the probabilities add up to {float(total):.4g}; expected a sum between 0 "
            "and 1, since the rest is the probability of asking for the truth"
        )
    law = tuple(chance / total for chance in chances)
    return _checked(levels, "forced answer", law, 1 - total, "forced=")


def _by_question(levels: tuple[Level, ...], truth: Fraction, unrelated: object) -> Device:
    size = len(levels)
    if unrelated is None:
        law = (Fraction(1, size),) * size
        return _checked(levels, "truth or chance", law, truth, f"truth={truth}")
    if size != 2:
        raise ArgumentError(
            f"unrelated= needs two levels, but there are {size}; write forced= with the "
            "probability of each level"
        )
    yes = _chance("unrelated", unrelated)
    return _checked(levels, "unrelated question", (1 - yes, yes), truth, f"truth={truth}")


def _checked(
    levels: tuple[Level, ...], how: str, law: tuple[Fraction, ...], truth: Fraction, option: str
) -> Device:
    """Refuse a device whose answers carry no information or have no protection."""
    if truth <= 0:
        raise ArgumentError(
            f"{option}: the truth is not identified, since answers are independent of it or "
            "reverse it; ask for the truth more often, with a lie below "
            f"{len(levels) - 1}/{len(levels)}"
        )
    if truth >= 1 or min(law) <= 0:
        raise BudgetError(
            f"{option}: some answer is given only if it is true, so eps is infinite; give every "
            "level a positive probability of a random answer"
        )
    odds = 1 + truth / ((1 - truth) * min(law))
    eps = math.log(odds.numerator) - math.log(odds.denominator)
    if eps < LEAST_EPS:
        raise BudgetError(
            f"{option}: eps is below {LEAST_EPS:g}, so the answers carry almost no information; "
            "ask for the truth more often"
        )
    if eps > MOST_EPS:
        raise BudgetError(
            f"{option}: eps = {eps:.3g} is above {MOST_EPS}, which gives no protection; raise the "
            "probabilities of random answers"
        )
    return Device(levels, how, law, truth)


def _chance(name: str, value: object) -> Fraction:
    """Return a probability as the exact fraction of its digits."""
    try:
        # A large power of ten would exhaust the memory.
        text = value if isinstance(value, str | Rational) else repr(real(value))
        short = not isinstance(text, str) or len(text.lower().partition("e")[2]) <= _POWER
        exact = Fraction(text) if short else Fraction(-1)
    except (ValueError, ZeroDivisionError):
        exact = Fraction(-1)
    if isinstance(value, bool) or not 0 <= exact <= 1:
        raise ArgumentError(
            f"{name}={quoted(value)}: expected a probability, such as 0.25, '1/6' or a Fraction"
        )
    return exact


def _cases(name: str, cases: object) -> tuple[int, int]:
    """Return the number of cases in which a device lies, and the number of all cases."""
    if not isinstance(cases, tuple | list) or len(cases) != 2:
        raise ArgumentError(
            f"{name}={quoted(cases)}: expected the number of lying cases and of all equally likely "
            f"cases, {name}=(1, 6)"
        )
    n_cases = integer(name, cases[1], 2, MOST_FACES, f"; write {name}=(1, 6)")
    return integer(name, cases[0], 1, n_cases - 1, f"; write {name}=(1, {n_cases})"), n_cases


HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Bit:
    """One question of a unary device: whether the truth is a given level, answered 0 or 1.

    `eps` is the privacy loss of the respondent's answers to all levels together.
    """

    eps: float
    how: str = "unary"

    @property
    def levels(self) -> tuple[Level, ...]:
        """The possible answers."""
        return (0, 1)

    @property
    def channel(self) -> Channel:
        """The device as plain numbers."""
        rate = 1 / (math.exp(self.eps) + 1)
        truth = 0.5 - rate
        law = (0.5 / (1 - truth), rate / (1 - truth))
        return Channel(truth, law, self.eps, self.how)


@dataclass(frozen=True, repr=False)
class UnaryDevice:
    """How one question of many levels is answered with one bit for each level.

    Made by :func:`dpmodels.unary_response`.

    Attributes
    ----------
    levels : tuple
        The possible answers.
    stated : Fraction
        The eps of all bits together.
    """

    levels: tuple[Level, ...]
    stated: Fraction

    @property
    def eps(self) -> float:
        """Privacy loss of all bits of one respondent together."""
        return float(self.stated)

    @property
    def questions(self) -> dict[str, Device | Bit]:
        """A device for each column of answers, as :func:`dpmodels.dp_survey` takes them."""
        return {str(level): Bit(self.eps) for level in self.levels}

    def randomize(self, values: Iterable[object]) -> pd.DataFrame:
        """Randomise true answers with exact coins; run it where the truth is known.

        Parameters
        ----------
        values : sequence of levels
            True values. A value that is missing or not a level is as private as any level.

        Returns
        -------
        DataFrame
            A column of 0 and 1 for each level; a row for each value.
        """
        truths, index = places_of(self.levels, values)
        size, entropy = len(truths) * len(self.levels), source()
        fair = coins(partial(rational, HALF), size, entropy)
        rare = coins(partial(lying, self.stated), size, entropy)
        true = (truths[:, None] == np.arange(len(self.levels))).ravel()
        bits = np.where(true, fair, rare).astype(np.int64).reshape(len(truths), -1)
        return pd.DataFrame(bits, index, [str(level) for level in self.levels])

    def __repr__(self) -> str:
        return f"<UnaryDevice: {len(self.levels)} levels, eps = {self.eps:g} for all bits, local>"


@checked_keywords("dp.unary_response")
def unary_response(levels: Iterable[Level], *, eps: float) -> UnaryDevice:
    """Construct a device for a question of many levels: a randomised yes or no to each level.

    Parameters
    ----------
    levels : sequence
        The possible answers, two or more.
    eps : float
        Privacy loss of all bits of a respondent together, at most 20.

    Returns
    -------
    UnaryDevice
        Its ``randomize(values)`` gives a column for each level. The table of all levels is
        ``dp_survey("~ town", bits, device={"town": device})``; ``device.questions`` are the devices
        of single columns, for ``dp_survey("Ulm ~ age", bits, device=device.questions)``.

    Raises
    ------
    ArgumentError, CodebookError
        If the levels are invalid.
    BudgetError
        If eps is not from 1e-6 to 20.

    Notes
    -----
    With more than about ``3 exp(eps) + 2`` levels, rare levels have less noise than under
    :func:`randomized_response`. A survey of one level prints the eps of all bits, since all were
    collected; a survey of two levels counts it twice, which overstates the loss.

    References
    ----------
    .. [1] Wang, T., Blocki, J., Li, N. and Jha, S. (2017). "Locally differentially private
       protocols for frequency estimation." USENIX Security.

    Examples
    --------
    >>> device = unary_response(["Ulm", "Bonn", "Rust"], eps=1.0)
    >>> bits = device.randomize(["Ulm", "Rust"])
    >>> list(bits), bits.shape
    (['Ulm', 'Bonn', 'Rust'], (2, 3))
    """
    return UnaryDevice(checked_levels(levels), checked_eps(eps))
