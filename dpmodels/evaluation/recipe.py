"""What is evaluated: anything that makes an answer of a table and a budget.

A recipe that takes the words ``data`` and ``codebook`` is asked as a verb is: it gets simulated
rows, their codebook, ``eps``, and of ``adjacency`` and ``breaks`` what it takes and does not say
itself. Any other recipe is called with the counts by cell and eps, and ``rng=`` if it takes that
word: a numpy generator of its own, the same in the same study.

Its answer is an array, or has ``released`` (unbiased counts by cell) or else ``counts``. A pair of
a recipe and a name reads that attribute of the answer instead: ``(recipe, "counts")``.
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from dpmodels.errors import ArgumentError, said
from dpmodels.evaluation.workload import Domain
from dpmodels.frames.progress import steps
from dpmodels.noise import simulation
from dpmodels.options import options
from dpmodels.sessions.session import Session
from dpmodels.typing import Floats

Callee = Callable[..., object]

# What the evaluation says, and no recipe may.
_RESERVED: Final = ("data", "sites", "codebook", "eps", "budget", "ledger")
_FILLED: Final = ("adjacency", "breaks")
_VERB: Final = ("data", "codebook", "eps", *_FILLED)


@dataclass(frozen=True)
class Recipe:
    """A function that is evaluated, under its name, and what of its answer is read."""

    name: str
    ask: Callee
    words: frozenset[str]
    read: str | None

    @property
    def is_verb(self) -> bool:
        """Whether it is asked of rows."""
        return {"data", "codebook"} <= self.words

    def of_counts(self, counts: Any, eps: float, seed: int) -> object:
        """Answer counts by cell."""
        kwargs = {"rng": np.random.default_rng(seed)} if "rng" in self.words else {}
        with simulation(seed=seed):
            return self.ask(counts.copy(), eps, **kwargs)

    def of_rows(
        self, data: object, codebook: object, eps: float, seed: int, **words: object
    ) -> object:
        """Answer rows, as a verb."""
        preset = self.ask.keywords if isinstance(self.ask, partial) else {}
        extra = {name: words[name] for name in _FILLED if name in words and name not in preset}
        accepted = {name: value for name, value in extra.items() if name in self.words}
        with simulation(seed=seed):
            return self.ask(data=data, codebook=codebook, eps=eps, **accepted)

    def array(self, answer: Any, attributes: tuple[str, ...]) -> Any:
        """Read the numbers of an answer: itself, or the first attribute that it has."""
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
                f"its answer is a {type(answer).__name__}: expected an array, or something with "
                f"{listed}; name the attribute that is meant, as in (recipe, {names[0]!r})"
            ) from None


def recipes(mapping: object) -> tuple[Recipe, ...]:
    """Return recipes by name, or say what is wrong with one."""
    if not isinstance(mapping, Mapping) or not mapping:
        raise ArgumentError(
            f"recipes={said(mapping)}: expected names with recipes, such as "
            '{"flat": functools.partial(dp.dp_hist, "~ v")}, one or more'
        )
    return tuple(_recipe(name, recipe) for name, recipe in mapping.items())


def _recipe(name: object, recipe: object) -> Recipe:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"recipes: the name {said(name)} is no text; write a short one")
    ask, read = recipe if isinstance(recipe, tuple) and len(recipe) == 2 else (recipe, None)
    if not callable(ask) or not isinstance(read, str | None):
        raise ArgumentError(
            f"recipes[{name!r}] is of type {type(recipe).__name__}: expected a verb, a function of "
            "counts and eps, or a pair of one and the name of an attribute of its answer"
        )
    function: Callee = ask
    _refuse_charged(name, function)
    words = _words(function)
    if "codebook" in words and "data" not in words:
        raise ArgumentError(
            f"recipes[{name!r}] has its rows: an evaluation asks for simulated ones; write "
            'functools.partial(dp.dp_hist, "~ v") without data'
        )
    return Recipe(name, function, words, read)


def _words(ask: Callee) -> frozenset[str]:
    """Return the words that a recipe takes; of one that takes any, those of a verb."""
    try:
        parameters = inspect.signature(ask).parameters
    except (TypeError, ValueError):
        return frozenset()
    kinds = {parameter.kind for parameter in parameters.values()}
    return frozenset(_VERB) if kinds == {inspect.Parameter.VAR_KEYWORD} else frozenset(parameters)


def _refuse_charged(name: str, ask: Callee) -> None:
    """Refuse a recipe with rows, a budget or a ledger of its own."""
    function = ask.func if isinstance(ask, partial) else ask
    if isinstance(getattr(function, "__self__", None), Session):
        raise ArgumentError(
            f"recipes[{name!r}] asks a session, which has rows and a ledger of its own: an "
            'evaluation spends nothing; write functools.partial(dp.dp_hist, "~ v")'
        )
    for word in _RESERVED:
        if isinstance(ask, partial) and word in ask.keywords:
            raise ArgumentError(
                f"recipes[{name!r}] says {word}=, which an evaluation says itself: leave it out"
            )


# What an evaluation has to know of the tables it asks about.


class Cell(NamedTuple):
    """One setting: a table's shape, how many rows, how many cells, and a budget."""

    table: str
    scale: int
    domain: Domain  # empty of rows that are no table of cells
    eps: float

    @property
    def size(self) -> str:
        """The numbers of cells, in words."""
        return " x ".join(map(str, self.domain))

    def __str__(self) -> str:
        over = f", {self.size} cells" if self.domain else ""
        return f"table {self.table!r}, scale {self.scale:,}{over}, eps {self.eps:g}"


class Score(NamedTuple):
    """How far one answer is from the truth."""

    error: float
    # A vector as long as the error, linear in it; empty where there is none.
    signed: Floats = np.empty(0)
    answer: Floats = np.empty(0)  # as it is drawn
    coverage: float = float("nan")  # share of intervals that hold the truth


class Task(Protocol):
    """Public or simulated tables, and what is asked of them."""

    @property
    def about(self) -> str:
        """What is asked, in words."""

    @property
    def baselines(self) -> tuple[Recipe, ...]:
        """Recipes that every study has."""

    def settings(self) -> list[Cell]:
        """Return all settings but for eps, which is nan."""

    def draw(self, cell: Cell, rng: np.random.Generator) -> Any:
        """Draw a table of the setting."""

    def times(self, table: Any, copies: int) -> Any:
        """Return a table in which every row stands so many times."""

    def truth(self, table: Any) -> Floats:
        """Return what an answer is drawn beside."""

    def score(self, recipe: Recipe, table: Any, eps: float, seed: int) -> Score:
        """Ask a recipe and measure its answer."""


# Every recipe on the same drawn tables, in every setting, again and again.


@dataclass(frozen=True, repr=False, eq=False)
class Outcomes:
    """What came of all runs in one setting: arrays of shape (recipes, repeats)."""

    error: Floats
    coverage: Floats
    # A recipe's inner products of signed errors, of shape (repeats, repeats); none of no errors.
    products: tuple[Floats, ...]
    truth: Floats  # of the first repeat, as the answers below
    answers: tuple[Floats, ...]


def run(
    task: Task, recipes: Sequence[Recipe], cells: Sequence[Cell], repeats: int, seed: int
) -> list[Outcomes]:
    """Run all recipes in all settings; nothing is charged, whatever was chosen for all calls."""
    with options(codebook=None, adjacency=None, ledger=None):
        watched = steps(iter(cells), total=len(cells), label="evaluation")
        return [_setting(task, recipes, cell, repeats, seed) for cell in watched]


def _setting(
    task: Task, recipes: Sequence[Recipe], cell: Cell, repeats: int, seed: int
) -> Outcomes:
    """Ask one recipe after the other; tables are drawn anew for each, and are the same."""
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


def draw_tables(task: Task, cell: Cell, n_tables: int, seed: int) -> Iterator[Any]:
    """Draw the tables of a setting, which are the same at every eps."""
    setting = cell._replace(eps=0.0)
    for repeat in range(n_tables):
        yield task.draw(cell, np.random.default_rng(seed_of(seed, "rows", setting, repeat)))


def run_once(task: Task, recipe: Recipe, table: Any, cell: Cell, seed: int) -> Score:
    """Ask a recipe once; what it raises is said with its name and the setting."""
    try:
        score = task.score(recipe, table, cell.eps, seed)
    except Exception as error:
        raise ArgumentError(
            f"recipes[{recipe.name!r}] raised {type(error).__name__} at {cell}: {error}"
        ) from error
    if not np.isfinite(score.error):
        raise ArgumentError(
            f"recipes[{recipe.name!r}] returned numbers that are not finite at {cell}: mend it, or "
            "leave out the setting"
        )
    return score


def seed_of(seed: int, name: str, cell: Cell, repeat: int) -> int:
    """Return a seed of one run, that does not depend on which others there are."""
    digest = zlib.crc32(f"{name} at {cell}".encode())
    state = np.random.SeedSequence([seed, digest, repeat]).generate_state(2, np.uint64)
    return int(state[0])
