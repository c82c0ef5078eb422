"""What all verbs share: their parameters, their docstrings, and the steps to a release.

A verb declares its own parameters and takes the others as ``**shared``. The decorator puts both
into one signature and one docstring, so that ``help`` is complete and each text stands once. It
hands all of them on as they are: ``return run_verb(name, spec, **locals())``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Final, Literal, NamedTuple, ParamSpec, TypedDict, TypeVar, cast

from dpmodels.arguments import bound
from dpmodels.codebook import Codebook
from dpmodels.column_roles import SurveyDesign
from dpmodels.errors import CodebookError, entry_point
from dpmodels.frames.delimited import CsvMode
from dpmodels.models.drafting import with_private_codebook
from dpmodels.models.release import run_release
from dpmodels.models.verb_spec import VerbSpec
from dpmodels.privacy import Adjacency, AdjacencyName, Guarantee, Ledger, Pufferfish
from dpmodels.request import Request, requested
from dpmodels.resolve_codebook import Resolved, as_private, codebook_of_call
from dpmodels.sites import Parties, SiteProtocol, gathered
from dpmodels.typing import Option
from dpmodels.verbs import VERBS

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Shared(TypedDict, total=False):
    """The parameters that every verb has, in the order of its signature."""

    sites: Mapping[str, object] | None
    protocol: str | SiteProtocol | None
    codebook: Resolved
    eps: float | None
    delta: float
    budget: Guarantee | Pufferfish | None
    adjacency: AdjacencyName | Adjacency | None
    person: str | Literal[False] | None
    rows: int | Literal["mean"] | None
    subset: str | None
    design: SurveyDesign | Literal[False] | None
    csv: CsvMode | None
    ledger: Ledger | None


# Parameters of the verb itself come after the budget.
_BEFORE: Final = ("sites", "protocol", "codebook", "eps", "delta", "budget")
_DEFAULTS: Final = {"delta": 0.0}
_OF_CODEBOOKS: Final = ("bounds", "levels")
_TEXTS: Final = """\
data : frame, mapping, path or iterable of frames
    pandas, polars, Arrow or another frame, a mapping of names to arrays, a
    structured array, the path of a ``.parquet``, ``.arrow`` or ``.csv`` file, a
    table of a database by :func:`sql`, or an iterable of frames. Never kept.
sites : mapping of str to data, optional
    Instead of ``data``: the rows of each site, disjoint, by its public name.
protocol : str or instance, optional
    Who sees what of the sites, see :mod:`dpmodels.sites`: ``"pooled"`` (a
    trusted aggregator), ``"local"`` (one site alone), ``"full"`` (noisy
    moments of each), ``"dpdispca"`` (the leading part of these, of R columns:
    ``dp.sites.DPdisPCA(R=10)``), ``"cape"`` or ``"secure_sum"`` (noise of about
    one release, without a trusted aggregator). Has to be stated.
codebook : Codebook, Draft, dict of declarations, path or "private", optional
    Public bounds and levels of the variables, see :class:`dp.codebook`; values
    outside their bounds are clipped to them. By default the codebook attached
    to the table, see :meth:`dp.Codebook.attach`, or that of
    :class:`dp.options`. ``"private"`` releases them first, from 15 % of the
    budget, see :func:`dp.private_codebook`.
eps, delta : float
    The guarantee; ``delta`` in (0, 1) for Gaussian mechanisms.
budget : Guarantee, optional
    Instead of ``eps``: ``dp.ZCDP(rho)``, ``dp.ApproxDP(eps, delta)``.
adjacency : {"replace", "add-remove"}
    Neighbours differ by one changed row (the number of rows is public), the
    default, or by one row more or fewer (it is private).
person : str or False, optional
    The column of ids that identifies persons, by default that of the codebook:
    neighbours differ in one person with all rows, and the number of persons is
    public or private instead of the number of rows. Two rows belong to one
    person if and only if their canonical ids are equal, see
    :class:`dp.Identifier`; a row whose id is missing does not count. All rows
    of a person must lie at one site. False protects rows.
rows : int or "mean", optional
    How many rows of a person count, drawn by a key of this release, or
    ``"mean"``, the default, for all of them with the total weight of one row.
    Without ``person`` any group of so many rows is protected.
subset : str, optional
    A condition on a row, such as ``"age >= 25"``: only rows for which it is
    true count. Their number is private, unlike that of rows filtered before
    the call.
design : SurveyDesign or False, optional
    How the rows were sampled, see ``dp.design``; by default that of the
    codebook. False analyses the rows as they are, unweighted. Verbs that take
    no design say so.
csv : {"records", "lines"}, optional
    What a row of a CSV file is. ``"records"``, the default, for files whose
    writer quotes cells (pandas, R, spreadsheets, databases): quoted cells may
    contain line breaks, and the unit of protection is a record. ``"lines"`` for
    files whose writer does not quote: each line is a row, and quotes end with
    their line. The choice is public; the report repeats it.
ledger : Ledger, optional
    Charged before a row is read; refuses what it cannot afford."""
_RAISES: Final = """

Raises
------
FormulaError, CodebookError, ArgumentError, BudgetError, FrameError
    Before a row is read and before anything is charged.
LedgerError
    If the ledger refuses; nothing is charged.

Warns
-----
BudgetWarning
    Before the charge, where the budget and a public number of rows very likely identify hardly
    anything: groups are guessed to be of one size, numbers to have a standard deviation of a
    sixth of their range. :class:`dpmodels.errors.BudgetWarning` says how to stop there."""


class _Entry(NamedTuple):
    names: tuple[str, ...]
    head: str
    text: str


def verb(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a verb with the shared parameters and errors in its signature and docstring.

    An entry for a shared parameter in the function's docstring adds to the shared text.
    """
    signature = _signature(function)
    name = f"dp.{function.__name__}"

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        bound(name, signature, args, kwargs)
        return function(*args, **kwargs)

    protected = entry_point(call)
    protected.__doc__ = _docstring(function)
    vars(protected)["__signature__"] = signature
    return protected


def run_verb(
    name: str,
    spec: Callable[[Request], VerbSpec[Result]],
    formula: str,
    data: object,
    shared: Shared,
    mechanism: object = "auto",
    **options: Option,
) -> Result:
    """Check a call, charge for it, read the rows and return the result.

    `spec` makes the specification of a request; `options` are the verb's own, as plain values.
    """
    sources = gathered(data, shared.get("sites"), shared.get("protocol"), shared.get("csv"))
    if isinstance(sources, Parties) and sources.sends:
        options = VERBS[name].sent(options)
    ledger, private = shared.get("ledger"), as_private(shared.get("codebook"))
    if private is None:
        request = request_of(name, formula, data, shared, **options)
        return run_release(spec(request), sources, mechanism, ledger)
    if name in _OF_CODEBOOKS:
        raise CodebookError(
            f"dp_{name} releases what a private codebook would: declare bounds that may be far too "
            "wide, as in codebook=dp.codebook(age=(-1e9, 1e9)); levels need no declaration"
        )
    # Bounds and levels come from a share of the budget, the call from the rest.
    declared = cast("Shared", {**shared, "codebook": private.declared})
    request = request_of(name, formula, sources, declared, **options)
    return cast("Result", with_private_codebook(request, private, sources, mechanism, ledger))


def request_of(
    name: str,
    formula: str,
    data: object,
    shared: Shared,
    *,
    resolve: Callable[[object, object, object, str], Codebook] = codebook_of_call,
    **options: object,
) -> Request:
    """Return a verb with its options, before any rows; `resolve` finds the codebook of a call."""
    return requested(
        name,
        formula,
        resolve(shared.get("codebook"), data, shared.get("sites"), formula),
        shared.get("eps"),
        shared.get("delta", 0.0),
        shared.get("budget"),
        shared.get("adjacency"),
        person=shared.get("person"),
        rows=shared.get("rows"),
        subset=shared.get("subset"),
        design=shared.get("design"),
        **options,
    )


def _signature(function: Callable[..., object]) -> inspect.Signature:
    signature = inspect.signature(function)
    shared = {
        name: inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_DEFAULTS.get(name),
            annotation=kind.__forward_arg__,
        )
        for name, kind in Shared.__annotations__.items()
    }
    formula, data, *options = list(signature.parameters.values())[:-1]
    after = [parameter for name, parameter in shared.items() if name not in _BEFORE]
    before = [shared[name] for name in _BEFORE]
    return signature.replace(parameters=[formula, data, *before, *options, *after])


def _docstring(function: Callable[..., object]) -> str:
    """Return the docstring of a verb with the shared parameters, errors and warnings.

    The errors stand after the section of what it returns, which follows that of parameters.
    """
    head, mark, rest = (inspect.getdoc(function) or "").partition("\nParameters\n----------\n")
    section, *sections = re.split(r"(\n\n\w[\w ]*\n-{3,}\n)", rest, maxsplit=2)
    sections[2:2] = [_RAISES] * bool(sections)
    formula, *entries = _entries(section)
    added = {entry.names[0]: entry.text for entry in entries if _is_shared(entry)}
    shared = [
        entry._replace(text="\n".join(filter(None, (entry.text, added.get(entry.names[0])))))
        for entry in _entries(_TEXTS)
    ]
    options = [entry for entry in entries if not _is_shared(entry)]
    before = [entry for entry in shared if entry.names[0] in ("data", *_BEFORE)]
    after = [entry for entry in shared if entry not in before]
    listed = "\n".join(
        "\n".join(filter(None, (entry.head, entry.text)))
        for entry in (formula, *before, *options, *after)
    )
    return "".join((head, mark, listed, *sections))


def _entries(section: str) -> Iterator[_Entry]:
    for entry in re.split(r"\n(?=\S)", section.strip("\n")):
        head, _, text = entry.partition("\n")
        names = tuple(name.strip() for name in head.partition(" :")[0].split(","))
        yield _Entry(names, head, text)


def _is_shared(entry: _Entry) -> bool:
    return entry.names[0] == "data" or entry.names[0] in Shared.__annotations__
