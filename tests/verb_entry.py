"""What an entry of the table of verbs has, and the public rows on which verbs are tried."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np

import dpmodels as dp
from dpmodels.errors import DPModelsError
from dpmodels.noise import entropy

Answer = Callable[..., None]
# The argument that the message has to name, what is changed, and the type of the error.
Refusal = tuple[str, dict[str, Any], type[DPModelsError]]
PURE, APPROX = {"delta": 0.0}, {"delta": 1e-6}
# What most results have.
DRAWN = "plot column"
# Protocols whose sites send sums.
SUMMING = ("full", "cape", "secure_sum")

# The lists of forms, and what is tried on each.
LISTS = {
    "stored": "saved and read, printed with its reading, drawn, set in a column: every verb",
    "forged": "files of it that an enemy changed: every verb",
    "planned": "in a plan of several calls, its figures: every verb of a session, once",
    "sites": "by each protocol, in one process and by files: every verb with protocols, once",
    "sent": "messages between sites that an enemy changed",
    "labelled": "labels and units of the codebook in its report and its table",
    "printed": "the same print in every format after it was saved",
    "drawn": "the intervals of its plot, whose axis has the name of the form",
    "column": "one column of a table of several results",
    "hostile": "released numbers that no table is made for",
    "alike": "intervals where any four rows may be one",
    "persons": "releases in units of persons",
    "standing": "rows that stand several times, as plans have them",
    "dask": "rows in partitions",
    "rounds": "rounds along one transcript",
    "counted": "never more complete rows than the public number",
    "shared": "five calls that share a budget",
}

BOOK = dp.codebook(
    age=dp.Numeric(0, 100, unit="years", label="age at the interview", missing=[-9]),
    wage=(0, 80),
    weight=(0, 2),
    sex=dp.Categorical({0: "female", 1: "male"}, ordered=True, missing=[9]),
    region=["n", "e", "s"],
    grade=[1, 2, 3],
    seen=[False, True],
    week=dp.Integer(0, 8),
    day=dp.Date("2001-01-01", "2001-12-31", missing=["2001-06-01"]),
)


def people(n_rows: int = 300, seed: int = 8) -> dict[str, np.ndarray]:
    """Rows that the codebook allows."""
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(0, 100, n_rows),
        "wage": rng.uniform(0, 80, n_rows),
        "weight": rng.uniform(0, 2, n_rows),
        "sex": rng.choice([0, 1], n_rows),
        "region": rng.choice(["n", "e", "s"], n_rows),
        "grade": rng.choice([1, 2, 3], n_rows),
        "seen": rng.random(n_rows) < 0.4,
        "week": rng.integers(0, 9, n_rows),
        "day": np.datetime64("2001-01-01") + rng.integers(0, 365, n_rows),
        "id": np.arange(n_rows) // 9,
    }


ROWS = people()


def without_own_law(fit: Any, *request: Any) -> None:
    """What has its own laws of the answer."""


def bad(argument: str, error: type[DPModelsError], *values: Any) -> list[Refusal]:
    """Refusals of one argument, a value each."""
    return [(argument, {argument: value}, error) for value in values]


@dataclass(frozen=True, eq=False)
class Form:
    """A verb asked in one of its forms.

    Attributes
    ----------
    formula
        Of the variables of `BOOK`; `height` is a number that some tests declare.
    tests
        Names of the lists, in `LISTS`, in which the form stands, separated by
        spaces.
    options
        Further arguments, the budget among them where it is special.
    name
        What tells it from the other forms of its verb.
    verb
        The entry that the form belongs to.
    """

    formula: str
    tests: str = "stored"
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    verb: Any = None

    @property
    def id(self) -> str:
        """The verb, and what the form is called or its formula."""
        return f"{self.verb.short}{self.verb.suffix} {self.name or self.formula}"

    @property
    def function(self) -> Callable[..., Any]:
        """The verb's function."""
        function: Callable[..., Any] = getattr(dp, self.verb.name)
        return function

    @property
    def arguments(self) -> dict[str, Any]:
        """The options, and the delta that the verb needs."""
        return {"delta": self.verb.delta, **self.options}

    def ask(self, data: Any = ROWS, **more: Any) -> Any:
        """Ask the verb on some rows, at eps = 2."""
        if self.verb.name == "dp_survey":
            book = more.get("codebook", BOOK)
            return self.function(self.formula, data, codebook=book, **self.options)
        arguments = {"codebook": BOOK, "eps": 2.0, **self.arguments, **more}
        if "protocol" in arguments:
            sites = {"x": data, "y": deepcopy(data)}
            return self.function(self.formula, sites=sites, **arguments)
        return self.function(self.formula, data, **arguments)


def several(formula: str, tests: str, **options: Mapping[str, Any]) -> tuple[Form, ...]:
    """List forms of one formula, by what they are called."""
    return tuple(Form(formula, tests, option, name) for name, option in options.items())


@contextmanager
def repeatable(name: str) -> Iterator[None]:
    """Draw the noise of the block from a stream that the name determines.

    Releases are those of fresh entropy: without the stamp of a simulation.
    """
    stream = entropy.seeded(crc32(name.encode()))
    with patch.object(entropy, "secure", lambda: stream):
        yield


@cache
def fitted(form: Form) -> Any:
    """A fit of the public rows, made once; the same in every run, whatever else runs."""
    with repeatable(form.id):
        return form.ask()


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb, or a verb in one of its kinds.

    Attributes
    ----------
    name
        Of the function.
    formulas
        On the suite's public rows, by the ways of its families.
    odd
        A formula on the codebook of odd rows.
    options
        Its further arguments, by the ways of its families or the same for both.
    answers
        Compare a result with the exact answer, by mechanism ("" for all): take
        the result, the formula, the rows and the codebook.
    families
        Of the mechanisms it is tried with, as `tests/contracts/families.py`
        names them, separated by spaces.
    mechanisms
        Their names; empty for all of the families.
    suffix
        What tells it from another entry of its name.
    rereads
        Reads the rows again, whatever the mechanism.
    delta
        Of the approximate guarantee that its forms are asked under.
    forms
        How other tests ask it; without any, the first formula.
    results
        The kinds of result that its forms give: whether each has a "plot" and
        a "column" of `dp.etable`.
    protocols
        Between sites that take it, besides "pooled" and "local".
    in_rounds
        Whether "secure_sum" takes it in one process, by rounds alone.
    gaussian
        The mechanism whose noise is Gaussian, as between sites; that of counts
        needs no name.
    refused
        Calls that are errors, besides those that every verb refuses.
    """

    name: str
    formulas: tuple[str, ...]
    odd: str
    options: tuple[Mapping[str, Any], ...] = ({}, {})
    answers: Mapping[str, Answer] = field(default_factory=dict)
    families: str = ""
    mechanisms: tuple[str, ...] = ()
    suffix: str = ""
    rereads: bool = False
    delta: float = 0.0
    forms: tuple[Form, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)
    protocols: tuple[str, ...] = ()
    in_rounds: bool = False
    gaussian: str = ""
    refused: tuple[Refusal, ...] = ()

    @property
    def short(self) -> str:
        """The name of its method, its command and its call in a plan."""
        return self.name.removeprefix("dp_")

    @property
    def normal(self) -> Mapping[str, str]:
        """What asks for Gaussian noise, where the verb has a choice."""
        name = self.gaussian or ("gaussian" if "counts" in self.families.split() else "")
        return {"mechanism": name} if name else {}

    def answer(self, mechanism: str) -> Answer:
        """What compares a result of this mechanism with the exact answer."""
        return self.answers.get(mechanism, self.answers.get("", without_own_law))
