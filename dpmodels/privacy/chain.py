"""Markov chains as public classes of models for dependent rows.

A chain has states ``1..k`` and a transition matrix P, ``P[x, y]`` the probability that y follows x.
The **class** is a set of distributions of a series of states; a guarantee holds under all of them:

* one matrix P, with one initial distribution, the stationary one, or any (``initial="any"``);
* all *lazy symmetric chains* ``P(s) = s I + (1 - s)/(k - 1) (J - I)``, J the matrix of ones, that
  keep their state with a probability s between two public numbers.

*Theorem (extremes of a class).* Under ``P(s)`` every influence of a quilt (see `quilts`) attains
its maximum over ``lo <= s <= hi`` at ``lo`` or at ``hi``.

*Proof.* The eigenvalues of ``P(s)`` are 1 and ``u = (k s - 1)/(k - 1)``, so that ``P^b(x, x) = (1 +
(k - 1) u^b)/k`` and ``P^b(x, y) = (1 - u^b)/k`` for y other than x. For x other than x' the largest
of ``log P^b(x, y)/P^b(x', y)`` over y is ``|h(u^b)|`` with ``h(v) = log (1 + (k - 1) v)/(1 - v)``,
which increases with v and is 0 at 0: the maximum is at y = x for v >= 0, else at y = x'. On either
side of 0 the sign of ``u^b`` does not change, and ``|u^b|`` and so ``|h(u^b)|`` grow with ``|u|``.
P(s) is symmetric, so ratios along columns are the same function, the stationary distribution is
uniform for all s, and an influence is a sum of at most three such terms, the same for every pair
(x, x'). A function that grows away from 0 on either side attains its maximum over an interval at an
end, and u increases with s.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Final

import numpy as np

from dpmodels.arguments import checked_keywords, integer, real
from dpmodels.errors import ArgumentError, FrameError, quoted, shorten
from dpmodels.external_files import conform
from dpmodels.typing import Flags, Floats, Numbers

# The name of a state: a level of a codebook.
State = bool | int | float | str
Law = tuple[float, ...]
STARTS: Final = ("any", "stationary")
# A choice: with more states the matrices of all lags exhaust the memory.
MOST_STATES: Final = 32
# Tolerance for the sum of probabilities, which are then normalised.
_NEAR: Final = 1e-9
_WIDE: Final = 2.0**63  # The range of integers in files
_LITERAL: Final = (
    "write the numbers, such as transition=[[0.9, 0.1], [0.2, 0.8]]. They have to be public: a "
    "matrix estimated from the protected rows voids the guarantee"
)


@dataclass(frozen=True)
class MarkovChain:
    """A public class of Markov chains, constructed by :func:`markov_chain`.

    Attributes
    ----------
    states : tuple of str, int, float or bool
        In the order of the matrix.
    transition : tuple of tuple of float, or None
        The matrix, rows sum to 1; None for lazy symmetric chains.
    stay : tuple of float, or None
        For lazy symmetric chains, the smallest and the largest probability to stay.
    initial : {"any", "stationary"} or tuple of float
        The distribution of the first state.
    """

    states: tuple[State, ...]
    transition: tuple[Law, ...] | None = None
    stay: tuple[float, float] | None = None
    initial: Law | str = "any"

    def __post_init__(self) -> None:
        states = _states(self.states)
        transition, stay, initial = self.transition, self.stay, self.initial
        if (transition is None) == (stay is None):
            raise ArgumentError(
                "transition= and stay=: give one of them, transition=[[0.9, 0.1], [0.2, 0.8]] or "
                "stay=(0.8, 0.95) for all symmetric chains with such probabilities of staying"
            )
        if transition is not None:
            transition = _matrix(transition, len(states))
        if stay is not None:
            stay = _interval(stay)
        if not isinstance(initial, str):
            initial = _law("initial", initial, len(states))
        elif initial not in STARTS:
            raise ArgumentError(
                f"initial={quoted(initial)}: expected 'any', 'stationary' or one probability a "
                "state"
            )
        values = {"states": states, "transition": transition, "stay": stay, "initial": initial}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def laws(self) -> Floats:
        """Matrices at which influences are largest, shape (laws, k, k)."""
        if self.transition is not None:
            return np.array([self.transition])
        assert self.stay is not None
        k = len(self.states)
        return np.array([lazy(k, stay) for stay in dict.fromkeys(self.stay)])

    @property
    def trouble(self) -> str:
        """Why the chain does not mix: it is reducible or periodic; empty if it mixes."""
        return next(filter(None, map(self._trouble, self.laws)), "")

    @property
    def reducible(self) -> bool:
        """Whether some state cannot reach another, under one of the matrices."""
        counts = (_communicating(matrix)[0] for matrix in self.laws)
        return any(n_classes > 1 for n_classes in counts)

    def _trouble(self, matrix: Floats) -> str:
        n_classes, labels = _communicating(matrix)
        if n_classes > 1:
            first, second = (self.states[int(np.argmax(labels == label))] for label in (0, 1))
            return f"reducible: {quoted(first)} and {quoted(second)} cannot both reach each other"
        steps = period(matrix)
        return f"periodic: it returns only every {steps} steps" if steps > 1 else ""

    @property
    def stationary(self) -> Floats:
        """The stationary distribution, shape (k,); ArgumentError for a reducible chain.

        It is the same for all lazy symmetric chains.
        """
        if self.reducible:
            raise ArgumentError(
                f"the chain is {self.trouble}, so it may have several stationary distributions; "
                "give the distribution of the first state, initial=[0.5, 0.5]"
            )
        return stationary_law(self.laws[0])

    @property
    def reversible(self) -> bool:
        """Whether a stationary series has the same distribution backwards."""
        flow = self.stationary[:, None] * self.laws[0]
        return bool(np.allclose(flow, flow.T, rtol=1e-9, atol=1e-15))

    @property
    def eigengap(self) -> float:
        """How fast the chain mixes: 1 minus the second eigenvalue of P and its reversal.

        The smallest of a class; 0 for chains that do not mix.
        """
        law, k = self.stationary, len(self.states)
        roots = np.sqrt(law)
        if k == 1:
            return 1.0
        scaled = [roots[:, None] * matrix / roots for matrix in self.laws]
        return min(
            1 - float(np.linalg.svd(similar, compute_uv=False)[1]) ** 2 for similar in scaled
        )

    @property
    def digest(self) -> str:
        """The identifier of the class in a ledger, independent of the order of its states."""
        ordered = self.ordered(sorted(self.states, key=_key))
        fields = [ordered.states, ordered.transition, ordered.stay, ordered.initial]
        return sha256(json.dumps(fields).encode()).hexdigest()[:16]

    def count_laws(self, steps: int, state: State) -> dict[tuple[int, State], CountLaw]:
        """Return the distributions of how often a state occurs, given each secret.

        Parameters
        ----------
        steps : int
            Length T of the series, from 1 to 100.
        state : str, int, float or bool
            The state to count.

        Returns
        -------
        dict of (time, state) to (values, probabilities)
            Secrets of positive probability; times start at 1. Counts 0 to T with exact
            fractions, for the matrix rounded to multiples of ``2**-53`` (positive entries stay
            positive).

        Raises
        ------
        ArgumentError
            If the class has several matrices, or any distribution of the first state.
        """
        keys = list(map(_key, self.states))
        if _key(state) not in keys:
            raise ArgumentError(
                f"state={quoted(state)}: expected one of {', '.join(map(quoted, self.states))}"
            )
        starts = self.starting(self.laws)
        if self.transition is None or starts is None:
            raise ArgumentError(
                "count_laws needs one distribution: give transition= and initial='stationary', or "
                "the distribution of the first state, initial=[0.5, 0.5]"
            )
        length = integer("steps", steps, 1, MOST_EXACT, "; longer series take minutes")
        laws = count_laws(self.laws[0], starts[0], length, keys.index(_key(state)))
        return {(time, self.states[x]): law for (time, x), law in laws.items()}

    def starting(self, laws: Floats) -> Floats | None:
        """Return the distribution of the first state under each matrix, None for any."""
        match self.initial:
            case "any":
                return None
            case "stationary":
                return np.tile(self.stationary, (len(laws), 1))
            case law:
                return np.tile(np.array(law, dtype=np.float64), (len(laws), 1))

    def ordered(self, states: Sequence[State]) -> MarkovChain:
        """Return the chain with its states in another order; refuse other states."""
        if set(map(_key, states)) != set(map(_key, self.states)):
            expected, levels = (", ".join(map(quoted, names)) for names in (self.states, states))
            raise ArgumentError(
                f"model= has the states {shorten(expected, 200)}, and the formula's variable the "
                f"levels {shorten(levels, 200)}: write dp.markov_chain with exactly those levels"
            )
        keys = list(map(_key, self.states))
        order = [keys.index(_key(state)) for state in states]
        transition, initial = self.transition, self.initial
        if transition is not None:
            transition = tuple(tuple(transition[x][y] for y in order) for x in order)
        if not isinstance(initial, str):
            initial = tuple(initial[x] for x in order)
        return MarkovChain(tuple(states), transition, self.stay, initial)

    def describe(self) -> str:
        """Return the class as reports print it."""
        start = {"any": "from any law", "stationary": "from its stationary law"}
        begins = start.get(str(self.initial), "from one given law")
        k = len(self.states)
        if self.stay is None:
            return f"one chain of {k} states (digest {self.digest[:8]}), {begins}"
        low, high = self.stay
        often = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        return f"symmetric chains of {k} states that stay with probability {often}, {begins}"


@checked_keywords("dp.markov_chain")
def markov_chain(
    states: Sequence[State],
    transition: Sequence[Sequence[float]] | Floats | None = None,
    *,
    stay: float | tuple[float, float] | None = None,
    initial: str | Sequence[float] | Floats = "any",
) -> MarkovChain:
    """Construct the publicly assumed model of how states follow each other.

    Parameters
    ----------
    states : sequence of str, int, float or bool
        Names of 2 to 32 states: the levels of the counted variable.
    transition : matrix of float, shape (k, k)
        Probabilities with which the state of a column follows that of a row. **It has to be
        public**: from a textbook, another study, or a design; never fitted to the protected rows
        nor chosen by looking at them.
    stay : float or (float, float), optional
        Instead of `transition`: all symmetric chains that stay with a probability in [lo, hi] and
        otherwise move to each other state with equal probabilities. The guarantee holds for all.
    initial : {"any", "stationary"} or sequence of float, shape (k,)
        The distribution of the first state: any, the weakest assumption; the stationary one; or a
        known one.

    Returns
    -------
    MarkovChain
        With the properties ``stationary``, ``reversible``, ``eigengap`` and ``trouble``, which
        says whether it is reducible or periodic.

    Raises
    ------
    ArgumentError
        If the matrix is not literal numbers, has another shape or rows that are not
        probabilities, or if states repeat.

    References
    ----------
    .. [1] Song, S., Wang, Y. and Chaudhuri, K. (2017). "Pufferfish Privacy Mechanisms for
       Correlated Data." SIGMOD.

    Examples
    --------
    >>> chain = markov_chain(["rest", "walk"], [[0.9, 0.1], [0.3, 0.7]])
    >>> chain.stationary.round(3).tolist(), chain.reversible, round(chain.eigengap, 2)
    ([0.75, 0.25], True, 0.64)
    >>> markov_chain(["rest", "walk", "run"], stay=(0.5, 0.9)).describe()
    'symmetric chains of 3 states that stay with probability 0.5 to 0.9, from any law'
    """
    return MarkovChain(
        states,  # type: ignore[arg-type]
        transition,  # type: ignore[arg-type]
        stay,  # type: ignore[arg-type]
        initial,  # type: ignore[arg-type]
    )


def lazy(k: int, stay: float) -> Floats:
    """Return the matrix of the symmetric chain that stays with probability `stay`."""
    matrix = np.full((k, k), (1 - stay) / (k - 1))
    np.fill_diagonal(matrix, stay)
    return matrix


def stationary_law(matrix: Floats) -> Floats:
    """Return the stationary distribution of an irreducible matrix, each entry to a few ulps.

    States are eliminated one after another, using only sums, products and quotients [1]_.

    .. [1] Grassmann, W. K., Taksar, M. I. and Heyman, D. P. (1985). "Regenerative Analysis and
       Steady State Distributions for Markov Chains." Operations Research 33(5), 1107-1116.
    """
    reduced = matrix.copy()
    k = len(reduced)
    for last in range(k - 1, 0, -1):
        reduced[:last, last] /= reduced[last, :last].sum()
        reduced[:last, :last] += np.outer(reduced[:last, last], reduced[last, :last])
    law = np.ones(k)
    for state in range(1, k):
        law[state] = law[:state] @ reduced[:state, state]
    return np.asarray(law / law.sum())


def period(matrix: Floats) -> int:
    """Return the period of an irreducible matrix: the gcd of the lengths of its cycles."""
    k = len(matrix)
    distances = np.full(k, -1)
    distances[0], reached = 0, [0]
    for x in reached:
        for y in np.flatnonzero((matrix[x] > 0) & (distances < 0)).tolist():
            distances[y] = distances[x] + 1
            reached.append(y)
    cycles = [
        int(distances[x] + 1 - distances[y]) for x, y in zip(*np.nonzero(matrix), strict=True)
    ]
    return math.gcd(*cycles)


def _key(state: State) -> tuple[str, State]:
    """Return a key that distinguishes equal levels of different types, 1 and True."""
    return type(state).__name__, state


def _states(names: object) -> tuple[State, ...]:
    listed = names.tolist() if isinstance(names, np.ndarray) else names
    sequence = listed if isinstance(listed, list | tuple) else ()
    states = tuple(state.item() if isinstance(state, np.generic) else state for state in sequence)
    valid = all(isinstance(state, bool | str) or abs(real(state)) < _WIDE for state in states)
    if not (
        2 <= len(states) <= MOST_STATES and valid and len(set(map(_key, states))) == len(states)
    ):
        raise ArgumentError(
            f"states={quoted(names)}: expected a list of 2 to {MOST_STATES} different names, the "
            'levels of the variable, such as ["rest", "walk", "run"]'
        )
    try:
        conform(tuple[State, ...], list(states), "states")
    except FrameError as error:
        raise ArgumentError(f"{error}; a ledger file with it could not be read back") from None
    return states


def _communicating(matrix: Floats) -> tuple[int, Numbers]:
    from scipy.sparse.csgraph import connected_components

    classes: tuple[int, Numbers] = connected_components(matrix > 0, connection="strong")
    return classes


def _matrix(rows: object, k: int) -> tuple[Law, ...]:
    if not isinstance(rows, list | tuple | np.ndarray):
        raise ArgumentError(
            f"transition= is of type {type(rows).__name__}, not a literal matrix: {_LITERAL}"
        )
    if len(rows) != k:
        raise ArgumentError(
            f"transition= has {len(rows)} rows for {k} states: expected {k} rows of {k} "
            "probabilities, in the order of the states"
        )
    return tuple(_law(f"row {x + 1} of transition", row, k) for x, row in enumerate(rows))


def _law(name: str, probabilities: object, k: int) -> Law:
    if not isinstance(probabilities, list | tuple | np.ndarray) or len(probabilities) != k:
        raise ArgumentError(f"{name}: expected {k} probabilities, one per state; {_LITERAL}")
    law = tuple(map(real, probabilities))
    total = math.fsum(law)
    if not (min(law) >= 0 and abs(total - 1) <= _NEAR):
        fault = "a number is missing" if math.isnan(total) else f"their sum is {total:.12g}"
        raise ArgumentError(
            f"{name}: expected {k} nonnegative probabilities that sum to 1 ({fault}); "
            "divide each row by its sum"
        )
    # Normalised probabilities are not normalised again when they are read back.
    return (
        law if abs(total - 1) <= k * 2.0**-52 else tuple(probability / total for probability in law)
    )


def _interval(stay: object) -> tuple[float, float]:
    bounds = stay if isinstance(stay, list | tuple) else (stay, stay)
    interval = tuple(map(real, bounds))
    if len(interval) != 2 or not 0 <= interval[0] <= interval[1] <= 1:
        raise ArgumentError(
            f"stay={quoted(stay)}: expected a probability, or the smallest and the largest one, "
            "such as stay=(0.8, 0.95)"
        )
    return interval


# Exact distributions of how often a state of a Markov chain occurs, given the state at one time.
#
# *Recursion.* Let ``f_t(x, c)`` be the probability that ``X_t = x`` and c of the times up to t have
# the counted state, ``g_t(x, c)`` that c of the later times have it given ``X_t = x``. Both follow
# recursively in ``O(T k**2)``; given ``X_t = x`` the count is the sum of the two independent parts.

# Counts and their probabilities.
CountLaw = tuple[range, tuple[Fraction, ...]]
# A choice: integers grow with the length, and longer series take minutes.
MOST_EXACT: Final = 100
_WHOLE: Final = 2**53


def count_laws(
    matrix: Floats, start: Floats, steps: int, state: int
) -> dict[tuple[int, int], CountLaw]:
    """Return the distributions of the count of a state, by time (from 1) and state at that time.

    Only states of positive probability at a time are included.
    """
    moves, first = np.array([integers(row) for row in matrix]), integers(start)
    counted = np.arange(len(matrix)) == state
    forward = [_shifted(np.outer(first, [1] + [0] * steps), counted)]
    for _ in range(steps - 1):
        forward.append(_shifted(moves.T @ forward[-1], counted))
    later: Numbers = np.zeros_like(forward[0])
    later[:, 0] = 1
    backward = [later]
    for _ in range(steps - 1):
        backward.append(moves @ _shifted(backward[-1], counted))
    laws = {}
    for time, (before, after) in enumerate(zip(forward, backward[::-1], strict=True), start=1):
        for x in range(len(matrix)):
            weights = np.convolve(before[x], after[x])[: steps + 1]
            total = sum(weights.tolist())
            if total:
                laws[time, x] = (
                    range(steps + 1),
                    tuple(Fraction(weight, total) for weight in weights),
                )
    return laws


def integers(law: Floats) -> Numbers:
    """Return probabilities as integers that add up to ``2**53``; the largest absorbs the rounding.

    Positive probabilities stay positive, since a distance of distributions may depend on rare
    values.
    """
    rounded = [
        max(round(probability * _WHOLE), int(probability > 0)) for probability in law.tolist()
    ]
    numerators = np.array(rounded, dtype=object)
    numerators[int(np.argmax(law))] += _WHOLE - sum(numerators.tolist())
    return numerators


def _shifted(table: Numbers, counted: Flags) -> Numbers:
    """Increase the count by one in the rows of the counted state."""
    shifted = table.copy()
    shifted[counted, 1:] = table[counted, :-1]
    shifted[counted, 0] = 0
    return shifted
