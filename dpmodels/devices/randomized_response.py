"""``randomized_response``: construct a device from its probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from numbers import Rational

from dpmodels.arguments import integer, real
from dpmodels.devices.device import Device
from dpmodels.errors import ArgumentError, BudgetError, quoted
from dpmodels.levels import Level
from dpmodels.variables import Categorical

# Beyond, one lie in 5 * 10^8 answers gives no useful protection.
MOST_EPS = 20
# Below, the errors of estimates exceed a million times their range.
LEAST_EPS = 1e-6
# Faces of dice, or cards of decks.
MOST_FACES = 10**9
# Signs of a power of ten.
_POWER = 4

Chance = float | str | Fraction


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
