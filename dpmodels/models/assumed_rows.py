"""Public assumptions about rows: what they predict by a law, and rows simulated from them.

No data are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from dpmodels import privacy
from dpmodels.arguments import lists_values, option, real
from dpmodels.codebook import Codebook
from dpmodels.dates import Date
from dpmodels.design import PrivateDesign
from dpmodels.design.columns import converted
from dpmodels.design.parts import FACES, Part
from dpmodels.design.rows import Rows, Terms
from dpmodels.errors import ArgumentError, NotAvailable, quoted
from dpmodels.formula.coding import Factor
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Category, Real
from dpmodels.frames import concatenated, no_rows, open_rows
from dpmodels.frames.persons import SECRET_BYTES
from dpmodels.mechanisms import Plan
from dpmodels.mechanisms.add_noise import event_law, noise_of
from dpmodels.mechanisms.protocol import CountPlan, RegressionPlan
from dpmodels.noise import Entropy
from dpmodels.statistics.losses import Multinomial, Poisson
from dpmodels.typing import Floats, Integers
from dpmodels.variables import Categorical, Numeric, Variable

# How clear a release will be, where a law is known: from public facts, before the charge.


# The accuracy of a release depends on where the rows lie within their bounds, which is not public.
# So it is assumed: numbers have a standard deviation of a sixth of their range, levels are equally
# frequent, outcomes have a rate of 0.3. Laws may be too pessimistic for rows that fill their
# bounds, and too optimistic for rows that fill little of them.

# The variance of a number at both ends of its range over the assumed one, a sixth of the range.
FILLED = 9.0
# Choices by simulation, of rows times 0.8 over the noise of the released curvature and d√d: below
# the first no slope has a standard error, from the second on most have, with an estimated radius
# and without.
LOST_CURVATURE, CLEAR_CURVATURE = 8.0, 40.0
LOST_PURE, CLEAR_PURE = 2.0, 18.0
# The same of rows times 0.2 over the noise of a sum of gradients and d: below the first predictions
# have a correlation of about 0.1 with those without noise, from the second on of 0.9.
LOST_PULL, CLEAR_PULL = 0.25, 4.0
# Variance of an outcome with the assumed rate: its curvature is a share of the largest, a quarter.
OUTCOME = 0.3 * 0.7
# Rows of a cell in noise sds of their number: fewer are lost, so many are mostly detected.
LOST_ROWS, CLEAR_ROWS = 1.0, 6.0

DELTA: Final = 1e-6  # Suggested where a call has none
# A choice: larger multiples of the budget are not suggested.
LARGEST_FACTOR = 1e4

NUMBERS = "numbers have a standard deviation of a sixth of their range"
EQUAL_GROUPS = "groups are of one size"


class Prediction(NamedTuple):
    """How clear a release will be, in units in which all is lost below `lost_below`."""

    strength: float  # Proportional to the number of rows, and to a power of one over the noise
    lost_below: float
    clear_from: float  # From which on most releases have what is lacking
    lacking: str
    assumption: str
    in_noise: float = 1.0  # The power of one over the noise to which it is proportional
    with_delta: bool = False  # Whether a small delta at the same eps is known to be enough

    @property
    def lost(self) -> bool:
        """Whether very likely nothing is identified."""
        return 0 < self.strength < self.lost_below

    @property
    def clear(self) -> bool:
        """Whether most releases identify what is at stake."""
        return self.strength >= self.clear_from


# From a plan and a public number of rows; None where no law is known.
Law = Callable[[object, int], Prediction | None]


def always(plan: object, rows: int) -> Prediction:
    """Predict a verb whose estimates always have noise of a known size, such as counts."""
    return Prediction(math.inf, 0.0, 0.0, "", "")


def of_outcomes(plan: object, rows: int) -> Prediction | None:
    """Predict a model of outcomes: the released curvature, or else gradient, against its noise.

    Counts have no prediction, since their mean within the bounds is unknown.
    """
    if not isinstance(plan, RegressionPlan) or isinstance(plan.facts.loss, Poisson | Multinomial):
        return None
    columns = plan.facts.columns
    curvature = plan.scales.get("along", plan.scales.get("both"))
    if not plan.facts.predictors.terms or (curvature is None and "tilt" not in plan.scales):
        return None
    if curvature is None:
        strength = rows * OUTCOME / (plan.scales["sd"] * columns)
        lacking = "predictions will be little better than chance"
        return Prediction(strength, LOST_PULL, CLEAR_PULL, lacking, NUMBERS)
    strength = rows * 4 * OUTCOME / (curvature * columns**1.5)
    lost_below, clear_from = LOST_CURVATURE, CLEAR_CURVATURE
    if "lengths" not in plan.scales:
        strength, lost_below, clear_from = strength / columns, LOST_PURE, CLEAR_PURE
    lacking = "no slope will have a standard error"
    return Prediction(strength, lost_below, clear_from, lacking, NUMBERS)


def covariances(design: PrivateDesign, plan: object, rows: int) -> Prediction:
    """Predict a covariance matrix, whose entries always have noise of a known size."""
    return components(design, plan, rows) or always(plan, rows)


def components(design: PrivateDesign, plan: object, rows: int) -> Prediction | None:
    """Predict a covariance matrix: all of its variance in one component against the noise."""
    if not is_one_release(plan) or design.scaling.unit:
        return None
    if sum(event.count for event in plan.events) > 1:
        return None
    variances = assumed_variances(design)
    strength = rows * float(variances.sum()) / noise_edge(plan, len(variances))
    falling = float((1 / np.arange(1.0, len(variances) + 1)).sum())
    lacking = "no component will stand clear of the noise"
    return Prediction(strength, 1.0, 2 * falling, lacking, f"{NUMBERS} and eigenvalues fall as 1/i")


def group_means(tallies: tuple[Tally, ...], plan: object, rows: int) -> Prediction | None:
    """Predict means by group: the rows of a cell against the noise of their number."""
    means = [tally for tally in tallies if tally.degree]
    if not means:
        return always(plan, rows)
    if not isinstance(plan, CountPlan):
        return None
    widest = min(means, key=lambda tally: tally.cells * math.sqrt(tally.parts))
    rounds = [plan] if plan.first is None else [plan, plan.first]
    noise = max(part.noise_sd for part in rounds) * math.sqrt(widest.parts)
    what = f"{'hardly any group' if widest.cells > 1 else 'nothing'} will have an estimate"
    prediction = Prediction(rows / widest.cells / noise, LOST_ROWS, CLEAR_ROWS, what, EQUAL_GROUPS)
    return prediction if plan.first is None or prediction.clear else None


def assumed_variances(design: PrivateDesign) -> Floats:
    """Return assumed variances of a design's columns in its unit ball, shape (columns,)."""
    blocks, units = design.public.blocks, design.scaling.scale * design.scaling.row_norm
    parts = np.split(units, np.cumsum([len(block.names) for block in blocks])[:-1])
    # Levels, and ends of ranges, are equally frequent in `points`.
    variances = [
        (block.points / unit).var(axis=0) / FILLED ** sum(map(_fills_little, block.factors))
        for block, unit in zip(blocks, parts, strict=True)
    ]
    return np.concatenate(variances)


def _fills_little(factor: Factor) -> bool:
    """Whether a factor is neither a category nor a whole number of two values."""
    if isinstance(factor, Real):
        return factor.step < factor.upper - factor.lower
    return not isinstance(factor, Category)


def is_one_release(plan: object) -> TypeGuard[Plan]:
    """Whether moments of the codebook's ball are released at once, with a known noise law."""
    if not isinstance(plan, Plan) or not plan.events:
        return False
    in_rounds = any(name.startswith(("lengths", "sum", "columns")) for name in plan.scales)
    return not math.isnan(plan.steps.off) and not in_rounds


def noise_edge(plan: Plan, columns: int) -> float:
    """Return the edge of the noise in the eigenvalues of so many columns."""
    return 2 * noise_of(plan, event_law(plan.events[0])).off * math.sqrt(columns)


def enlarged(
    guarantee: privacy.Guarantee, events: Sequence[privacy.Event], factor: float
) -> privacy.Guarantee:
    """Return the guarantee under which noise is smaller by a factor, rounded to two digits.

    >>> from dpmodels.privacy import PureDP, ZCDP
    >>> enlarged(PureDP(0.5), (), 3.1), enlarged(ZCDP(0.01), (), 10)
    (PureDP(eps=1.6), ZCDP(rho=1.0))
    """
    match guarantee:
        case privacy.ZCDP(rho=rho):
            return privacy.ZCDP(two_digits(rho * factor**2))
        case privacy.ApproxDP(eps=eps, delta=delta):
            if any(isinstance(event, privacy.GaussianEvent) for event in events):
                eps = privacy.gaussian_eps(delta, privacy.gaussian_multiplier(guarantee) / factor)
                return privacy.ApproxDP(two_digits(eps), delta)
            return privacy.ApproxDP(two_digits(eps * factor), delta)
        case privacy.PureDP(eps=eps):
            return privacy.PureDP(two_digits(eps * factor))


def two_digits(value: float) -> float:
    """Round to two digits."""
    return float(f"{value:.2g}")


SEED: Final = 20_260_101  # Arbitrary: every call simulates the same rows
HEAVY: Final = 3  # Degrees of freedom


class Distribution(NamedTuple):
    """Quantiles of a distribution of mean 0 and variance 1, and its default mean and sd."""

    like: str
    quantiles: Callable[[Floats], Floats]
    mean: float  # As a share of the declared range, from the lower bound
    sd: float  # As a share of it


LAWS: Final[Mapping[str, Distribution]] = {
    "normal": Distribution("normal, 3 sd to either bound", ndtri, 1 / 2, 1 / 6),
    "uniform": Distribution(
        "uniform", lambda u: math.sqrt(12) * (u - 0.5), 1 / 2, math.sqrt(1 / 12)
    ),
    "skewed": Distribution(
        "exponential from the lower bound", lambda u: -np.log1p(-u) - 1, 1 / 7, 1 / 7
    ),
    "zeros": Distribution(
        "half at the lower bound",
        lambda u: (-np.log1p(-np.maximum(2 * u - 1, 0.0)) - 0.5) / math.sqrt(0.75),
        1 / 20,
        math.sqrt(0.75) / 10,
    ),
    "tails": Distribution(
        "Student's t, 3 df", lambda u: stdtrit(HEAVY, u) / math.sqrt(HEAVY), 1 / 2, 1 / 12
    ),
    "narrow": Distribution("normal in bounds ten times too wide", ndtri, 1 / 2, 1 / 60),
}
_FORM: Final = (
    'write shape="normal", or by variable shape={"wage": "skewed", "age": ("normal", 41, 12), '
    '"sex": [0.6, 0.4]}, or give a frame of public rows'
)


@dataclass(frozen=True, eq=False, repr=False)
class AssumedRows:
    """Assumed distributions of a codebook's variables, or a public frame of rows.

    Variables with assumed distributions are independent; rows of a frame are drawn as they are.
    """

    codebook: Codebook  # Of the simulated variables
    shapes: Mapping[str, object]  # By variable: a distribution, with mean and sd or not, or shares
    usual: str  # Law of numbers that are not in shapes
    frame: pd.DataFrame | None = None  # Public rows, instead of distributions
    unit: str | None = None  # Column of sampling units, of which each has one row

    def __repr__(self) -> str:
        return f"<Guess: {self.about}>"

    @property
    def about(self) -> str:
        """Description of the assumptions."""
        if self.frame is not None:
            return f"rows like those of a public sample of {len(self.frame):,}"
        stated = [f"{name} {_describe_shape(shape)}" for name, shape in self.shapes.items()]
        usual_variables = [
            variable for name, variable in self.codebook.items() if name not in self.shapes
        ]
        levels = [isinstance(variable, Categorical) for variable in usual_variables]
        usual = [f"numbers {LAWS[self.usual].like}"] * (not all(levels))
        usual += ["levels equally common"] * any(levels)
        independence = ["variables independent"] * (len(self.codebook) > 1)
        return "; ".join([*stated, *usual, *independence])

    def rows(self, count: int, draw: int = 0) -> pd.DataFrame:
        """Draw independent rows, reproducible by `count` and `draw`."""
        rng = np.random.default_rng([SEED, draw])
        if self.frame is not None:
            return _rows_at(self.frame, rng.integers(0, len(self.frame), size=count))
        frame = self._from_uniform(rng.random((count, len(self.codebook))))
        return frame if self.unit is None else frame.assign(**{self.unit: np.arange(count)})

    def block(self, count: int) -> pd.DataFrame:
        """Return `count` rows spread evenly over the joint distribution; at most a frame's rows."""
        rng = np.random.default_rng(SEED)
        if self.frame is not None:
            return _rows_at(self.frame, rng.permutation(len(self.frame))[:count])
        from scipy.stats import qmc

        points = qmc.Sobol(max(len(self.codebook), 1), seed=rng).random_base2(count.bit_length())
        ranks = points[:count].argsort(axis=0).argsort(axis=0)
        return self._from_uniform((ranks + 0.5) / count)

    def _from_uniform(self, uniform: Floats) -> pd.DataFrame:
        columns = {
            name: _column(variable, self.shapes.get(name, self.usual), column)
            for (name, variable), column in zip(self.codebook.items(), uniform.T, strict=False)
        }
        person = self.codebook.person
        if person is not None and person not in columns:
            columns[person] = np.arange(len(uniform))
        return pd.DataFrame(columns)


def assumed_rows(
    codebook: Codebook, shape: object = "normal", names: Iterable[str] = ()
) -> AssumedRows:
    """Read the assumptions about rows, of the variables `names` or of all.

    `shape` is a distribution of all numbers, one of :data:`LAWS`; by variable a distribution, one
    with mean and sd in the variable's unit, or shares of the levels in order; or **public** rows.
    ArgumentError or CodebookError if it is not valid, or the frame lacks a column.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(wage=(0, 80), sex=["F", "M"])
    >>> assumed = assumed_rows(cb, {"wage": ("skewed", 20, 12), "sex": [0.25, 0.75]})
    >>> rows = assumed.block(1_000)
    >>> float(rows["wage"].mean().round()), int((rows["sex"] == "F").sum())
    (20.0, 250)
    """
    book = codebook.select(tuple(names) or tuple(codebook))
    if isinstance(shape, str):
        return AssumedRows(book, {}, option("shape", shape, LAWS, f"; {_FORM}"))
    if isinstance(shape, Mapping):
        for name, variable_shape in shape.items():
            _check(name, variable_shape, codebook)
        shapes = {name: variable_shape for name, variable_shape in shape.items() if name in book}
        return AssumedRows(book, shapes, "normal")
    return AssumedRows(book, {}, "normal", _public(shape, book))


def _public(shape: Any, book: Codebook) -> pd.DataFrame:
    import narwhals.stable.v2 as nw

    try:
        frame: pd.DataFrame = nw.from_native(shape, eager_only=True).to_pandas()
    except TypeError:
        raise ArgumentError(f"shape is of type {type(shape).__name__}: {_FORM}") from None
    required = [*book, *([] if book.person is None else [book.person])]
    absent = [name for name in required if name not in frame.columns]
    if absent or not len(frame):
        problem = f"lacks the column {absent[0]!r}" if absent else "has no rows"
        raise ArgumentError(
            f"shape= is a frame that {problem}: give public rows of "
            f'{", ".join(map(repr, required))}, or a distribution, shape="normal"'
        )
    return frame[required]


def _rows_at(frame: pd.DataFrame, positions: Integers) -> pd.DataFrame:
    rows: pd.DataFrame = frame.iloc[positions].reset_index(drop=True)
    return rows


def _check(name: object, shape: object, codebook: Codebook) -> None:
    if name not in codebook:
        raise ArgumentError(
            f"shape= names {quoted(name)}, which the codebook does not declare; it declares "
            f"{', '.join(map(repr, codebook))}"
        )
    variable = codebook[str(name)]
    if isinstance(variable, Categorical):
        _check_shares(str(name), shape, variable)
        return
    law, *moments = shape if isinstance(shape, tuple) else (shape,)
    option(f"shape[{name!r}]", law, LAWS, f"; {_FORM}")
    numbers = [real(moment) for moment in moments]
    is_valid = len(numbers) == 2 and not math.isnan(numbers[0]) and numbers[1] > 0
    if moments and (isinstance(variable, Date) or not is_valid):
        raise ArgumentError(
            f"shape[{name!r}]: expected a distribution, with or without a mean and a positive sd, "
            'such as ("normal", 41, 12); dates take no mean and sd'
        )


def _check_shares(name: str, shape: object, variable: Categorical) -> None:
    shares = [real(share) for share in shape] if lists_values(shape) else []
    valid = len(shares) == len(variable.levels) and all(share >= 0 for share in shares)
    if not valid or not math.isclose(sum(shares), 1.0, abs_tol=1e-6):
        raise ArgumentError(
            f"shape[{name!r}]: expected {len(variable.levels)} shares that sum to 1, one for each "
            f"of the levels {variable.describe()}"
        )


def _describe_shape(shape: Any) -> str:
    if isinstance(shape, str):
        return LAWS[shape].like
    if isinstance(shape, tuple) and isinstance(shape[0], str):
        law, *moments = shape
        return f"{law}" + (f", mean {moments[0]:g}, sd {moments[1]:g}" if moments else "")
    return "in shares " + " : ".join(f"{share:g}" for share in shape)


def _column(variable: Variable, shape: object, uniform: Floats) -> object:
    if isinstance(variable, Categorical):
        levels = len(variable.levels)
        shares = np.full(levels, 1 / levels) if isinstance(shape, str) else np.asarray(shape)
        code = np.searchsorted(np.cumsum(shares)[:-1], uniform, side="right")
        return np.array([*variable.levels, None], dtype=object)[code]
    low, high = variable.days if isinstance(variable, Date) else (variable.lower, variable.upper)
    name, *moments = shape if isinstance(shape, tuple) else (shape,)
    law, width = LAWS[name], high - low
    mean, sd = moments or (low + law.mean * width, law.sd * width)
    value = np.clip(mean + sd * law.quantiles(uniform), low, high)
    if isinstance(variable, Date):
        return np.rint(value).astype("int64").astype("datetime64[D]").astype("datetime64[s]")
    if isinstance(variable, Numeric) and variable.step:
        value = low + variable.step * np.rint((value - low) / variable.step)
    return value


# Rows that are stored once, with how often each of them occurs.


def public_part(frame: pd.DataFrame, terms: Terms) -> Part:
    """Convert assumed or public rows, without persons, as one part."""
    if terms.undeclared:
        raise NotAvailable(
            f"levels of {terms.undeclared[0]!r} are not declared, so none is assumed"
        )
    chunks = list(open_rows(frame).chunks(tuple(terms.codebook), len(frame)))
    cells = {name: concatenated([chunk[name] for chunk in chunks]) for name in terms.codebook}
    columns = converted(terms.codebook, cells)
    return Part(columns, None if terms.subset is None else terms.subset.holds(columns), None)


class DrawnRows(Rows):
    """Rows with their numbers of repetitions."""

    def __init__(self, part: Part, terms: Terms) -> None:
        super().__init__(no_rows(terms.variables), terms, bytes(SECRET_BYTES))
        self._part = part

    @property
    def rereadable(self) -> bool:
        """They can be read repeatedly."""
        return True

    @property
    def nrows(self) -> int:
        """Number of rows, with repetitions."""
        return self._part.taken

    def standing(self, times: int) -> DrawnRows:
        """Return the same rows, each counted `times` times as often."""
        places = np.ones(self._part.rows, int) if self._part.places is None else self._part.places
        return DrawnRows(self._part._replace(places=times * places), self.terms)

    def thinned(self, heads: int, entropy: Entropy) -> DrawnRows:
        """Return as many rows as coins would choose, evenly."""
        places = np.ones(self._part.rows, int) if self._part.places is None else self._part.places
        fewer = np.diff(np.cumsum(places) * heads // FACES, prepend=0)
        return DrawnRows(self._part._replace(places=fewer), self.terms)

    def _parts(self) -> Iterator[Part]:
        yield self._part
