"""The algorithms to evaluate, and checks of them: any function of a table and a budget.

A recipe with the parameters ``data`` and ``codebook`` is called as a verb: with simulated rows,
their codebook, ``eps``, and ``adjacency`` and ``breaks`` if it takes them and does not set them.
Any other recipe is called with the counts by cell and eps, and ``rng=`` if it takes that: a numpy
generator, reproducible within the study.

Its answer is an array, or has ``released`` (unbiased counts by cell) or else ``counts``. A pair of
a recipe and a name reads that attribute of the answer instead: ``(recipe, "counts")``.

*Bias.* Signed errors e_1, ..., e_R of independent runs, vectors of one workload, have the squared
bias ``|E e|²`` as the mean of ``<e_i, e_j>`` over pairs of different runs. If errors are symmetric
about 0, as this package's noise is, their signs can be flipped: the p-value is the share of
flipped samples with a mean as large, exact for the flips that are drawn.

*Consistency.* The error must vanish as eps grows. It is measured at 10³ and at 10⁶ times eps: an
error proportional to 1/eps is then 1,000 times smaller, and one that does not decrease is that of
a table which the algorithm cannot represent. It must decrease by a factor of five.

*Exchangeability.* If every row is repeated ten times and eps is a tenth, the scaled error of an
algorithm that depends only on signal and noise is the same. Both are run on the same tables, and
the mean log ratio has an interval, for each table and for all. Rounding to integers is not
exchangeable, so eps is at most one half here, where it costs one percent; ratios beyond ten percent
are flagged. Noise of an (eps, delta) guarantee is not proportional to 1/eps, and may be flagged.
Absence of a flag proves nothing: see the interval, which is nan if an error is 0.

*Workloads.* Linear queries on the cells of a table are a matrix W, which is never formed:
``image(e)`` is a vector of the same norm as W e, computed in about linear time. For all ranges of n
cells with prefix sums ``P_0, ..., P_n`` it is ``sqrt(n + 1) (P - mean P)``, since ``sum_{i<j} (P_j
- P_i)² = (n + 1) sum P² - (sum P)²``. Several axes are transformed one after the other: for a
Kronecker product of matrices ``W_i``, any ``T_i`` with ``T_iᵀ T_i = W_iᵀ W_i`` give a product of
the same norm.
"""

from __future__ import annotations

import inspect
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pandas as pd
from scipy import stats

from dpmodels.errors import ArgumentError, quoted
from dpmodels.frames.progress import steps
from dpmodels.noise import simulation
from dpmodels.options import options
from dpmodels.sessions.session import Session
from dpmodels.source_tree import load_source
from dpmodels.typing import Floats, Integers, Table

Domain = tuple[int, ...]

RANDOM: Final = 2_000
# Seed of random ranges, the same in all studies.
_SEED: Final = 12


@dataclass(frozen=True)
class Workload:
    """Queries on the cells of a table of one domain."""

    about: str
    queries: int
    image: Callable[
        [Floats], Floats
    ]  # linear map of errors by cell, to the norm of all queries' errors

    def error(self, image: Floats, scale: float) -> float:
        """Return the scaled average error of a query: ``|W e| / (queries * scale)``."""
        return float(np.linalg.norm(image)) / (self.queries * scale)


def identity(domain: Domain) -> Workload:
    """All cells."""
    return Workload("every cell", math.prod(domain), np.ravel)


def prefix(domain: Domain) -> Workload:
    """All ranges that begin at the first cell; for two axes, boxes at the first corner."""
    return Workload("ranges from the first cell on", math.prod(domain), _prefixes)


def ranges(domain: Domain) -> Workload:
    """All ranges of cells; for two axes, all boxes."""
    queries = math.prod(n * (n + 1) // 2 for n in domain)
    return Workload("all ranges of cells", queries, _ranges)


def random_ranges(domain: Domain) -> Workload:
    """2,000 ranges of cells, or boxes, with bounds drawn once for all studies."""
    rng = np.random.default_rng(_SEED)
    ends = [np.sort(rng.integers(0, n, size=(2, RANDOM)), axis=0) for n in domain]
    lows, highs = tuple(low for low, _ in ends), tuple(last + 1 for _, last in ends)
    image = partial(_boxes, lows=lows, highs=highs)
    return Workload(f"{RANDOM:,} random ranges of cells", RANDOM, image)


def margins(axes: int) -> list[tuple[int, ...]]:
    """Return the axes of all marginals of one and of two variables."""
    return [subset for size in (1, 2) for subset in combinations(range(axes), size)]


def marginals(domain: Domain) -> Workload:
    """All marginals of one and of two variables."""
    if len(domain) < 2:
        raise ArgumentError(
            'error="marginals": a table of one variable has no marginals; write error="identity"'
        )
    subsets = margins(len(domain))
    queries = sum(math.prod(domain[axis] for axis in axes) for axes in subsets)
    complements = [
        tuple(axis for axis in range(len(domain)) if axis not in axes) for axes in subsets
    ]
    return Workload(
        "marginals of one and two variables", queries, partial(_summed, over=complements)
    )


WORKLOADS: Final[Mapping[str, Callable[[Domain], Workload]]] = {
    "prefix": prefix,
    "ranges": ranges,
    "random": random_ranges,
    "identity": identity,
    "marginals": marginals,
}


def _prefixes(error: Floats) -> Floats:
    for axis in range(error.ndim):
        error = error.cumsum(axis=axis)
    return error.ravel()


def _ranges(error: Floats) -> Floats:
    for axis, cells in enumerate(error.shape):
        sums = np.insert(error.cumsum(axis=axis), 0, 0.0, axis=axis)
        error = math.sqrt(cells + 1) * (sums - sums.mean(axis=axis, keepdims=True))
    return error.ravel()


def _boxes(error: Floats, lows: tuple[Integers, ...], highs: tuple[Integers, ...]) -> Floats:
    """Sum over boxes from prefix sums at their corners."""
    for axis in range(error.ndim):
        error = np.insert(error.cumsum(axis=axis), 0, 0.0, axis=axis)
    total = np.zeros(len(lows[0]))
    for corner in product((0, 1), repeat=error.ndim):
        ends = zip(corner, lows, highs, strict=True)
        total += (-1) ** corner.count(0) * error[tuple(hi if at else lo for at, lo, hi in ends)]
    return total


def _summed(error: Floats, over: list[tuple[int, ...]]) -> Floats:
    return np.concatenate([error.sum(axis=axes).ravel() for axes in over])


Callee = Callable[..., object]

# Arguments that the evaluation sets, and no recipe may.
_RESERVED: Final = ("data", "sites", "codebook", "eps", "budget", "ledger")
_FILLED: Final = ("adjacency", "breaks")
_VERB: Final = ("data", "codebook", "eps", *_FILLED)


@dataclass(frozen=True)
class Recipe:
    """A function to evaluate, its name, and the attribute of its answer to read."""

    name: str
    ask: Callee
    words: frozenset[str]
    read: str | None

    @property
    def is_verb(self) -> bool:
        """Whether it is called with rows."""
        return {"data", "codebook"} <= self.words

    def of_counts(self, counts: Floats | Integers, eps: float, seed: int) -> object:
        """Call it with counts by cell."""
        kwargs = {"rng": np.random.default_rng(seed)} if "rng" in self.words else {}
        with simulation(seed=seed):
            return self.ask(counts.copy(), eps, **kwargs)

    def of_rows(
        self, data: object, codebook: object, eps: float, seed: int, **words: object
    ) -> object:
        """Call it with rows, as a verb."""
        preset = self.ask.keywords if isinstance(self.ask, partial) else {}
        extra = {name: words[name] for name in _FILLED if name in words and name not in preset}
        accepted = {name: value for name, value in extra.items() if name in self.words}
        with simulation(seed=seed):
            return self.ask(data=data, codebook=codebook, eps=eps, **accepted)

    def array(self, answer: object, attributes: tuple[str, ...]) -> Floats:
        """Read the numbers of an answer: the first attribute that it has, or itself."""
        names = attributes if self.read is None else (self.read,)
        numbers = next((getattr(answer, name) for name in names if hasattr(answer, name)), answer)
        if numbers is answer and self.read is not None:
            raise ArgumentError(
                f"its answer is a {type(answer).__name__} without the attribute {self.read!r}"
            )
        try:
            return np.asarray(numbers, dtype=np.float64)
        except (TypeError, ValueError):
            listed = " or ".join(names)
            raise ArgumentError(
                f"its answer is a {type(answer).__name__}: expected an array, or an object with "
                f"{listed}; name another attribute as in (recipe, {names[0]!r})"
            ) from None


def recipes(mapping: object) -> tuple[Recipe, ...]:
    """Return named recipes; ArgumentError if one is not valid."""
    if not isinstance(mapping, Mapping) or not mapping:
        raise ArgumentError(
            f"recipes={quoted(mapping)}: expected a mapping from names to recipes, such as "
            '{"flat": functools.partial(dp.dp_hist, "~ v")}'
        )
    return tuple(_recipe(name, recipe) for name, recipe in mapping.items())


def _recipe(name: object, recipe: object) -> Recipe:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"recipes: the name {quoted(name)} is not a nonempty string")
    ask, read = recipe if isinstance(recipe, tuple) and len(recipe) == 2 else (recipe, None)
    if not callable(ask) or not isinstance(read, str | None):
        raise ArgumentError(
            f"recipes[{name!r}] is of type {type(recipe).__name__}: expected a verb, a function of "
            "counts and eps, or a pair of one of these and the name of an attribute"
        )
    function: Callee = ask
    _refuse_charged(name, function)
    words = _options(function)
    if "codebook" in words and "data" not in words:
        raise ArgumentError(
            f"recipes[{name!r}] already has rows, but an evaluation simulates them; write "
            'functools.partial(dp.dp_hist, "~ v") without data'
        )
    return Recipe(name, function, words, read)


def _options(ask: Callee) -> frozenset[str]:
    try:
        parameters = inspect.signature(ask).parameters
    except (TypeError, ValueError):
        return frozenset()
    kinds = {parameter.kind for parameter in parameters.values()}
    return frozenset(_VERB) if kinds == {inspect.Parameter.VAR_KEYWORD} else frozenset(parameters)


def _refuse_charged(name: str, ask: Callee) -> None:
    function = ask.func if isinstance(ask, partial) else ask
    if isinstance(getattr(function, "__self__", None), Session):
        raise ArgumentError(
            f"recipes[{name!r}] is a method of a session, which has rows and a ledger: an "
            'evaluation spends nothing; write functools.partial(dp.dp_hist, "~ v")'
        )
    for word in _RESERVED:
        if isinstance(ask, partial) and word in ask.keywords:
            raise ArgumentError(
                f"recipes[{name!r}] sets {word}=, which the evaluation sets: leave it out"
            )


# The tables of an evaluation.


class Cell(NamedTuple):
    """One setting: a table's shape, how many rows, how many cells, and a budget."""

    table: str
    scale: int
    domain: Domain  # empty for rows
    eps: float

    @property
    def size(self) -> str:
        """The numbers of cells as text."""
        return " x ".join(map(str, self.domain))

    def __str__(self) -> str:
        over = f", {self.size} cells" if self.domain else ""
        return f"table {self.table!r}, scale {self.scale:,}{over}, eps {self.eps:g}"


class Score(NamedTuple):
    """How far one answer is from the truth."""

    error: float
    # A vector whose norm is the error; else empty.
    signed: Floats = np.empty(0)
    answer: Floats = np.empty(0)  # for plots
    coverage: float = float("nan")  # share of intervals that contain the truth


class Task(Protocol):
    """Public or simulated tables, and the error to measure."""

    @property
    def about(self) -> str:
        """Description of the error."""

    @property
    def baselines(self) -> tuple[Recipe, ...]:
        """Recipes that are part of every study."""

    def settings(self) -> list[Cell]:
        """Return all settings, with eps nan."""

    def draw(self, cell: Cell, rng: np.random.Generator) -> Any:
        """Draw a table of the setting."""

    def times(self, table: Any, copies: int) -> Any:
        """Return a table in which every row is repeated `copies` times."""

    def truth(self, table: Any) -> Floats:
        """Return the exact answer, for plots."""

    def score(self, recipe: Recipe, table: Any, eps: float, seed: int) -> Score:
        """Call a recipe and measure the error of its answer."""


# Every recipe on the same simulated tables, repeatedly in every setting.


@dataclass(frozen=True, repr=False, eq=False)
class Outcomes:
    """Results of all runs in one setting: arrays of shape (recipes, repeats)."""

    error: Floats
    coverage: Floats
    # Per recipe, inner products of signed errors, of shape (repeats, repeats); may be empty.
    products: tuple[Floats, ...]
    truth: Floats  # of the first repeat, as are the answers
    answers: tuple[Floats, ...]


def run(
    task: Task, recipes: Sequence[Recipe], cells: Sequence[Cell], repeats: int, seed: int
) -> list[Outcomes]:
    """Run all recipes in all settings, without a ledger and other global options."""
    with options(codebook=None, adjacency=None, ledger=None):
        watched = steps(iter(cells), total=len(cells), label="evaluation")
        return [_setting(task, recipes, cell, repeats, seed) for cell in watched]


def _setting(
    task: Task, recipes: Sequence[Recipe], cell: Cell, repeats: int, seed: int
) -> Outcomes:
    """Run one recipe after the other, on the same tables, which are drawn again for each."""
    errors, coverages, products, answers = [], [], [], []
    for recipe in recipes:
        scores = [
            run_once(task, recipe, table, cell, seed_of(seed, f"ask {recipe.name}", cell, repeat))
            for repeat, table in enumerate(draw_tables(task, cell, repeats, seed))
        ]
        errors.append([score.error for score in scores])
        coverages.append([score.coverage for score in scores])
        signed = np.stack([score.signed for score in scores])
        products.append(signed @ signed.T if signed.size else np.empty((0, 0)))
        answers.append(scores[0].answer)
    truth = task.truth(next(draw_tables(task, cell, 1, seed)))
    return Outcomes(np.array(errors), np.array(coverages), tuple(products), truth, tuple(answers))


def draw_tables(task: Task, cell: Cell, n_tables: int, seed: int) -> Iterator[object]:
    """Draw the tables of a setting, the same at every eps."""
    setting = cell._replace(eps=0.0)
    for repeat in range(n_tables):
        yield task.draw(cell, np.random.default_rng(seed_of(seed, "rows", setting, repeat)))


def run_once(task: Task, recipe: Recipe, table: Table, cell: Cell, seed: int) -> Score:
    """Run a recipe once; errors name the recipe and the setting."""
    try:
        score = task.score(recipe, table, cell.eps, seed)
    except Exception as error:
        raise ArgumentError(
            f"recipes[{recipe.name!r}] raised {type(error).__name__} at {cell}: {error}"
        ) from error
    if not np.isfinite(score.error):
        raise ArgumentError(
            f"recipes[{recipe.name!r}] returned numbers that are not finite at {cell}: fix it, or "
            "leave out the setting"
        )
    return score


def seed_of(seed: int, name: str, cell: Cell, repeat: int) -> int:
    """Return the seed of one run, which does not depend on other runs."""
    digest = zlib.crc32(f"{name} at {cell}".encode())
    state = np.random.SeedSequence([seed, digest, repeat]).generate_state(2, np.uint64)
    return int(state[0])


def published_algorithms() -> ModuleType:
    """Import the algorithms for one axis, ``LINE``, and for two axes, ``PLANE``.

    They are in benchmarks/algorithms.py of the source tree. NotAvailable if it does not exist.
    """
    return load_source(
        "benchmarks.algorithms", "benchmarks/algorithms.py", "the published algorithms"
    )


SIGN_FLIPS: Final = 9_999
LARGE: Final = 1_000.0
FALL: Final = 5.0
TIMES: Final = 10
LARGEST: Final = 0.5
TOLERANCE: Final = 1.1
# Runs of the check of consistency: the errors compared differ by orders of magnitude.
CONSISTENCY_RUNS: Final = 3
ALARM: Final = 0.01
# Smaller scaled errors are rounding.
_ROUNDING: Final = 1e-9


def bias(products: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Return the squared bias as a share of the squared error, and the p-value of no bias.

    Inner products of signed errors have the shape (runs, runs). The share is an unbiased estimate,
    which may be negative; both are nan for fewer than two runs.
    """
    runs = len(products)
    if runs < 2:
        return math.nan, math.nan
    total = float(np.trace(products)) / runs
    if total == 0:
        return 0.0, 1.0
    pairs = products - np.diag(np.diag(products))
    pair_sum = float(pairs.sum())
    signs = rng.choice([-1.0, 1.0], size=(SIGN_FLIPS, runs))
    flipped = ((signs @ pairs) * signs).sum(axis=1)
    # Sums in a different order differ in the last digits.
    larger = int((flipped >= pair_sum - 1e-9 * abs(pair_sum)).sum())
    return pair_sum / (runs * (runs - 1)) / total, (1 + larger) / (1 + SIGN_FLIPS)


def smallest_p(runs: int) -> float:
    """Return the smallest possible p-value of `runs` runs: flipping all signs changes nothing."""
    return max(2.0 ** (1 - runs), 1 / (1 + SIGN_FLIPS))


def checked(
    task: Task, recipes: Sequence[Recipe], cells: Sequence[Cell], repeats: int, seed: int
) -> pd.DataFrame:
    """Check consistency and exchangeability at the smallest scale of every table.

    One row per recipe and table, and one for the ratio over all tables, named by an empty string:
    ratios of errors with intervals, and True, False, or None if a recipe refuses such a budget.
    """
    # The last cell of a table and domain is kept: the smallest eps of the smallest scale.
    order = sorted(cells, key=lambda cell: (-cell.scale, -cell.eps))
    tried = {(cell.table, cell.domain): cell for cell in order}
    level = 1 - ALARM / max(len(recipes) * (len(tried) + 1), 1)
    lines = []
    with options(codebook=None, adjacency=None, ledger=None):
        for recipe in recipes:
            logs = []
            for cell in tried.values():
                logs.append(_log_ratios(task, recipe, cell, repeats, seed))
                where = {"algorithm": recipe.name, "table": cell.table, "domain": cell.size}
                consistent = _consistent(task, recipe, cell, seed)
                lines.append(where | consistent | _interval(logs[-1], level))
            where = {"algorithm": recipe.name, "table": "", "domain": ""}
            blank = {"falls_to": math.nan, "consistent": None}
            lines.append(where | blank | _interval(np.concatenate(logs), level))
    return pd.DataFrame(lines)


def _errors(
    task: Task, recipe: Recipe, cell: Cell, tables: Iterable[object], seed: int
) -> Floats | None:
    try:
        scores = [
            run_once(task, recipe, table, cell, seed_of(seed, f"check {recipe.name}", cell, repeat))
            for repeat, table in enumerate(tables)
        ]
    except ArgumentError:
        return None
    return np.array([score.error for score in scores])


def _consistent(task: Task, recipe: Recipe, cell: Cell, seed: int) -> dict[str, object]:
    errors, later_errors = (
        _errors(task, recipe, step, draw_tables(task, cell, CONSISTENCY_RUNS, seed), seed)
        for step in (cell._replace(eps=cell.eps * factor) for factor in (LARGE, LARGE**2))
    )
    if errors is None or later_errors is None:
        return {"falls_to": math.nan, "consistent": None}
    first, last = float(errors.mean()), float(later_errors.mean())
    ratio = last / first if first > 0 else 0.0
    return {"falls_to": ratio, "consistent": last <= max(first / FALL, _ROUNDING)}


def _log_ratios(task: Task, recipe: Recipe, cell: Cell, repeats: int, seed: int) -> Floats:
    """Return log ratios of errors for ten times the rows and a tenth of eps; empty if refused."""
    small = cell._replace(eps=min(cell.eps, LARGEST))
    enlarged = (task.times(table, TIMES) for table in draw_tables(task, cell, repeats, seed))
    base = _errors(task, recipe, small, draw_tables(task, cell, repeats, seed), seed)
    tenfold = _errors(task, recipe, small._replace(eps=small.eps / TIMES), enlarged, seed)
    if base is None or tenfold is None or min(base.min(), tenfold.min()) <= 0:
        return np.empty(0)
    return np.asarray(np.log(tenfold / base))


def _interval(logs: Floats, level: float) -> dict[str, object]:
    """Return the ratio of errors with its interval, and whether it is compatible with 1."""
    if len(logs) < 2:
        blank = {"ratio": math.nan, "ratio_low": math.nan, "ratio_high": math.nan}
        return blank | {"exchangeable": None}
    middle, se = float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(len(logs))
    reach = float(stats.t.ppf((1 + level) / 2, len(logs) - 1)) * se
    with np.errstate(over="ignore"):
        ratio, low, high = np.exp([middle, middle - reach, middle + reach]).tolist()
    beyond = low > TOLERANCE or high < 1 / TOLERANCE
    return {"ratio": ratio, "ratio_low": low, "ratio_high": high, "exchangeable": not beyond}
