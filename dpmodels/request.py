"""A request: the verb, formula and options that all sites, a ledger and an audit agree on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from numbers import Real
from typing import Final, Literal, cast

import numpy as np

from dpmodels.codebook import Codebook, fingerprint
from dpmodels.column_roles import SurveyDesign, as_design
from dpmodels.errors import ArgumentError, BudgetError, quoted, shorten
from dpmodels.external_files import Shape, conform
from dpmodels.labels import plain as shown
from dpmodels.options import current_settings
from dpmodels.privacy import (
    ZCDP,
    About,
    Adjacency,
    AdjacencyName,
    ApproxDP,
    Event,
    Guarantee,
    Pufferfish,
    PureDP,
    adjacency,
    protecting,
    resolve_budget,
)
from dpmodels.privacy.events import all_gaussian
from dpmodels.typing import Plain
from dpmodels.verbs import VERBS

# The shape of a request as plain values, in an untrusted file.
STATED: Final[Mapping[str, Shape]] = {
    "verb": str,
    "formula": str,
    "codebook": Codebook.from_dict,
    "options": dict[str, str | int | float | bool | tuple[float | None, ...] | None],
    "guarantee": tuple[str, dict[str, float]],
    "adjacency": adjacency,
    "subset": str | None,
}

_Scalar = str | int | float | bool | None
# The same in the file of a result: options of any verb.
SAVED: Final[Mapping[str, Shape]] = {
    **STATED,
    "options": dict[str, _Scalar | tuple[_Scalar | tuple[_Scalar, ...], ...]],
    "guarantee": ApproxDP | ZCDP | PureDP | Pufferfish,
}


@dataclass(frozen=True)
class Drafted:
    """Bounds and levels of a codebook that were released first, from the budget of a call."""

    guarantee: Guarantee  # Of these releases and the call together
    gaussian: bool  # Whether the call has to have Gaussian noise only
    events: tuple[Event, ...]  # Of these releases
    text: str  # For the header of the table

    def require(self, events: Sequence[Event]) -> None:
        """Refuse a charge of another kind than was fixed."""
        if self.gaussian and not all_gaussian(events):
            raise BudgetError(
                "with the bounds and levels that were released the call would have another kind of "
                "noise than was planned for: name its mechanism="
            )


@dataclass(frozen=True)
class Request:
    """A verb with its arguments, before any rows.

    Examples
    --------
    >>> import dpmodels as dp
    >>> one = Request("mean", "~ a", dp.codebook(a=(0, 1)), dp.PureDP(1), adjacency("replace"))
    >>> one.about("geometric").verb, Request.of(one.plain()) == one
    ('dp_mean', True)
    """

    verb: str  # Its name, such as "pca" of ``dp_pca``
    formula: str  # As written
    codebook: Codebook
    guarantee: Guarantee | Pufferfish
    adjacency: Adjacency
    options: Mapping[str, Plain] = field(default_factory=dict)  # Other arguments, as plain values
    subset: str | None = None  # A condition on the rows that count
    attached: bool = False  # Whether the codebook is the one beside the table
    drafted: Drafted | None = None  # How the codebook was released, and the whole guarantee
    parent: Request | None = None  # Of the result that this one is derived from, at no cost

    def derive(self, verb: str, **options: object) -> Request:
        """Return the request of a result that is computed from that of this one."""
        return replace(self, verb=verb, options=options, parent=self)

    @property
    def private(self) -> Guarantee:
        """The guarantee where it is differential privacy; else a BudgetError."""
        if isinstance(self.guarantee, Pufferfish):
            raise BudgetError(
                f"dp_{self.verb} asks for differential privacy, and budget= is "
                f"{self.guarantee.describe()}: write eps=1.0, or dp_table(..., time=, person=)."
            )
        return self.guarantee

    def plain(self) -> dict[str, object]:
        """Return plain values, as sites exchange them."""
        return {
            "verb": self.verb,
            "formula": self.formula,
            "codebook": self.codebook.to_dict(),
            "options": dict(self.options),
            "guarantee": [type(self.guarantee).__name__, asdict(self.guarantee)],
            "adjacency": self.adjacency.text,
            "subset": self.subset,
        }

    @classmethod
    def of(cls, plain: Mapping[str, Plain]) -> Request:
        """Read plain values back; FrameError if they are of another shape."""
        fields = conform(STATED, {word: plain[word] for word in STATED}, "terms")
        guarantee = conform(ApproxDP | ZCDP | PureDP, plain["guarantee"], "terms.guarantee")
        return cls(**{**fields, "options": plain["options"], "guarantee": guarantee})

    def to_saved(self) -> dict[str, object]:
        """Return plain values for the file of a result."""
        options = {name: plain_option(word) for name, word in self.options.items()}
        if self.parent is not None:
            return {"verb": self.verb, "options": options, "parent": self.parent.to_saved()}
        return {**self.plain(), "options": options}

    @classmethod
    def of_saved(cls, plain: object) -> Request:
        """Read such values; FrameError if they are of another shape."""
        if isinstance(plain, dict) and "parent" in plain:
            shape = {"verb": str, "options": SAVED["options"], "parent": cls.of_saved}
            derived = conform(shape, plain, "request")
            parent: Request = derived["parent"]
            return parent.derive(derived["verb"], **derived["options"])
        return cls(**conform(SAVED, plain, "request"))

    def about(self, mechanism: str, codebook: Codebook | None = None) -> About:
        """Return what a ledger keeps, with a digest of the codebook or of its used part."""
        sha256 = fingerprint(self.codebook if codebook is None else codebook)
        unit = getattr(self.guarantee, "hidden", self.adjacency.unit.removeprefix("one "))
        return About(f"dp_{self.verb}", self.formula, mechanism, sha256, unit)


def requested(
    verb: str,
    formula: str,
    codebook: Codebook,
    eps: float | None,
    delta: float,
    budget: Guarantee | Pufferfish | None,
    neighbours: AdjacencyName | Adjacency | None,
    *,
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
    design: SurveyDesign | Mapping[str, object] | Literal[False] | None = None,
    **options: object,
) -> Request:
    """Return the request of a verb; ArgumentError or BudgetError if it is invalid."""
    guarantee = resolve_budget(eps, delta, budget)
    default = current_settings().adjacency
    if neighbours is None and default is not None:
        neighbours = cast("AdjacencyName", default.text)
    attached = codebook.attached
    codebook = designed(codebook, design)
    relation = related(codebook, neighbours, person, rows)
    if design is False:
        codebook = codebook.with_design(None)
    if codebook.design is not None:
        design = codebook.design
        if not VERBS[verb].designs:
            raise ArgumentError(
                f"dp_{verb} takes no survey design: write design=False to analyse the rows as they "
                "are, unweighted"
            )
        if options.get("weights") is not None:
            raise ArgumentError(
                f"weights={quoted(options['weights'])} are precision weights, and the design has "
                "sampling weights: leave out weights=, or write design=False"
            )
        if relation.person != design.psu or relation.rows not in (None, "mean"):
            declared, unit, instead = (
                (f"psu={quoted(design.psu)}", "the sampling unit", "")
                if design.psu
                else ("no psu=", "the row", ", or name the units by psu=")
            )
            raise ArgumentError(
                f"the design has {declared}, so its unit of protection is {unit}, not "
                f"{relation.unit}: leave out person= and rows={instead}"
            )
    return Request(verb, formula, codebook, guarantee, relation, options, subset, attached)


def designed(codebook: Codebook, design: object) -> Codebook:
    """Return the codebook with the design of a call, if it states one."""
    return (
        codebook if design is None or design is False else codebook.with_design(as_design(design))
    )


def plain_option(word: object) -> object:
    """Return an argument as a value of JSON.

    >>> plain_option(np.arange(2.0)), plain_option([1, None])
    ((0.0, 1.0), (1, None))
    >>> plain_option(np.datetime64('2001-02-03'))
    '2001-02-03'
    """
    if isinstance(word, np.datetime64 | date):
        return str(word)[:10]
    if isinstance(word, np.generic):
        return word.item()
    if isinstance(word, str | int | float | None):
        return word
    if isinstance(word, Iterable):
        return tuple(map(plain_option, word))
    return float(word) if isinstance(word, Real) else word


def related(
    codebook: Codebook,
    neighbours: AdjacencyName | Adjacency | None,
    person: str | Literal[False] | None,
    rows: int | Literal["mean"] | None,
) -> Adjacency:
    """Return the neighbours of a call, ``"replace"`` by default.

    Persons are those of the codebook unless the call names a column or says False; an `Adjacency`
    is used unchanged.

    >>> import dpmodels as dp
    >>> book = dp.codebook(age=(0, 100), person="id")
    >>> related(book, "add-remove", None, 4).unit, related(book, None, False, None).unit
    ('one person (at most 4 rows)', 'one row')
    """
    relation = adjacency("replace" if neighbours is None else neighbours)
    if person is None and rows is None and not isinstance(neighbours, Adjacency):
        person, rows = current_settings().person, current_settings().rows
    if person is None and relation.rows is None and not isinstance(neighbours, Adjacency):
        person = codebook.unit
    return protecting(relation, rows, None if person is False else person)


def canonical(plain: object) -> bytes:
    """Return canonical JSON."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def difference(left: object, right: object, where: str = "") -> str:
    """Say where two plain values first differ; an empty text if they are equal."""
    # Sites with different JSON, such as 1 and 1.0, would derive different secrets.
    if canonical(left) == canonical(right):
        return ""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in [*left, *(key for key in right if key not in left)]:
            path = f"{where} {shorten(shown(str(key)))}".strip()
            if key not in left or key not in right:
                return f"{path} is stated by one of them only"
            reason = difference(left[key], right[key], path)
            if reason:
                return reason
    texts = [shorten(shown(str(value)), 120) for value in (right, left)]
    return f"{where} is {texts[0]} and not {texts[1]}"
