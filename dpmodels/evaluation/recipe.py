"""The algorithms to evaluate: any function of a table and a budget.

A recipe with the parameters ``data`` and ``codebook`` is called as a verb: with simulated rows,
their codebook, ``eps``, and ``adjacency`` and ``breaks`` if it takes them and does not set them.
Any other recipe is called with the counts by cell and eps, and ``rng=`` if it takes that: a numpy
generator, reproducible within the study.

Its answer is an array, or has ``released`` (unbiased counts by cell) or else ``counts``. A pair of
a recipe and a name reads that attribute of the answer instead: ``(recipe, "counts")``.
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from dpmodels.errors import ArgumentError, quoted
from dpmodels.evaluation.workload import Domain
from dpmodels.frames.progress import steps
from dpmodels.noise import simulation
from dpmodels.options import options
from dpmodels.sessions.session import Session
from dpmodels.source_tree import load_source
from dpmodels.typing import Floats, Table

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

    def of_counts(self, counts: Any, eps: float, seed: int) -> object:
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

    def array(self, answer: object, attributes: tuple[str, ...]) -> Any:
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
    """Return the parameters of a recipe; those of a verb if it takes any keyword."""
    try:
        parameters = inspect.signature(ask).parameters
    except (TypeError, ValueError):
        return frozenset()
    kinds = {parameter.kind for parameter in parameters.values()}
    return frozenset(_VERB) if kinds == {inspect.Parameter.VAR_KEYWORD} else frozenset(parameters)


def _refuse_charged(name: str, ask: Callee) -> None:
    """Refuse a recipe that sets rows, a budget or a ledger."""
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
    # A vector whose norm is the error; empty if there is none.
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
