"""A call with a private codebook: bounds and levels are released first, from its own budget.

Theorem
    The guarantees of all stages are fixed before the first, by public facts, and each stage
    satisfies its own, whatever those before released: so eps, delta and rho add up. Where bounds
    and call both have Gaussian noise, the multipliers that are fixed compose exactly
    (Theorem 66). The call has Gaussian noise if its plan for assumed declarations has.

What is searched follows from the formula, the declarations and the types that a file or a database
declares, never from a cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

from dpmodels import errors, privacy
from dpmodels.codebook import Codebook
from dpmodels.dictionaries.draft import ALL_NAMES
from dpmodels.formula.parse import check_size, parsed_formula, quote, syntax, variables_in
from dpmodels.formula.sides import marks
from dpmodels.frames import open_rows, require
from dpmodels.frames.protocol import Holds
from dpmodels.models.release import planned_events, result_of, run_release, specified, verb_of
from dpmodels.options import ledger_of
from dpmodels.privacy.events import all_gaussian
from dpmodels.request import Drafted, Request
from dpmodels.resolve_codebook import LEVELLED, LOGICAL, PrivateCodebook, bounded
from dpmodels.sites import Parties, parties
from dpmodels.variables import Boolean, Categorical, Numeric, Variable

# Of delta, where levels are released: a choice.
LEVELS_DELTA: Final = 0.5
# More than the rounding of a few products.
_ROOM: Final = 1 - 1e-9
_BOUNDS, _LEVELS = "bounds", "levels"


class Stages(NamedTuple):
    """The guarantees of bounds, levels and call; None where a stage is left out."""

    bounds: privacy.Guarantee | None
    levels: privacy.Guarantee | None
    rest: privacy.Guarantee
    gaussian: bool = False  # Whether bounds and call have Gaussian noise only


class Unknown(NamedTuple):
    """The variables whose bounds and levels are released, and others that need neither."""

    bounds: dict[str, str]  # With their types
    levels: dict[str, Categorical]  # With levels of their type, for a plan
    logical: tuple[str, ...]


def with_private_codebook(
    request: Request,
    private: PrivateCodebook,
    data: object,
    mechanism: object,
    ledger: privacy.Ledger | None,
) -> object:
    """Release bounds and levels, then the call with them; charge all stages."""
    holders, ledger = one_table(data), ledger_of(ledger)
    unknown = unknown_variables(request, private, holders)
    logical = dict.fromkeys(unknown.logical, Boolean())
    request = replace(request, codebook=request.codebook | logical)
    assumed, expected = _assumed(request, private, unknown, holders, mechanism, ledger)
    numbers = len(unknown.bounds), len(unknown.levels)
    stages = divided(request.private, private.share, *numbers, gaussian=all_gaussian(expected))
    calls = draft_calls(request, private, unknown, stages)
    if ledger is not None:
        charges = [planned_events(_spec(call), holders, "auto", ledger) for call in calls]
        expected_spec = _spec(replace(assumed, guarantee=stages.rest))
        charges.append(planned_events(expected_spec, holders, mechanism, ledger))
        if not all(step.fits for step in ledger.forecast(charges)):
            raise errors.LedgerError(
                "the ledger has less left than the call and the bounds and levels of its private "
                f"codebook take: {ledger.describe()}; nothing is charged"
            )
    book, results = released(calls, request.codebook, private, holders, ledger)
    spent = tuple(event for result in results for event in result.release.events)
    drafted = Drafted(request.private, stages.gaussian, spent, f"private ({private.text})")
    last = replace(request, codebook=book, guarantee=stages.rest)
    last = replace(last, drafted=drafted if spent else None)
    try:
        result = run_release(_spec(last), holders, mechanism, ledger)
    except errors.DPModelsError as error:
        error.args = (f"{error}{found_text(book)}",)
        raise
    replayed = replace(result.request, guarantee=request.guarantee, drafted=None)
    release, call = result.release, result.call
    return result_of(replayed, specified(replayed, release), release, call.ledger, call.reason)


def divided(
    total: privacy.Guarantee, share: float, n_bounds: int, n_levels: int, *, gaussian: bool
) -> Stages:
    """Divide a budget between bounds, levels and a call, which may have Gaussian noise only.

    >>> from dpmodels.privacy import PureDP
    >>> divided(PureDP(1.0), 0.25, 3, 0, gaussian=True)
    Stages(bounds=PureDP(eps=0.25), levels=None, rest=PureDP(eps=0.75), gaussian=False)
    """
    if not n_bounds + n_levels:
        return Stages(None, None, total)
    if isinstance(total, privacy.ApproxDP):
        return _divided_with_delta(total, share, n_bounds, n_levels, gaussian=gaussian)
    if n_levels:
        raise errors.BudgetError(
            f"a private codebook has levels to release, which {total.describe()} does not allow, "
            "as a level may occur in a single row: write delta=1e-6, or declare the levels"
        )
    amount = total.eps if isinstance(total, privacy.PureDP) else total.rho
    bounds, left = privacy.split(amount, (share, 1 - share))
    return Stages(type(total)(bounds), None, type(total)(left))


def _divided_with_delta(
    total: privacy.ApproxDP, share: float, n_bounds: int, n_levels: int, *, gaussian: bool
) -> Stages:
    """Divide eps and delta; Gaussian bounds and call divide ``1/m**2`` of what is left."""
    part, levels, rest = share * n_bounds / (n_bounds + n_levels), None, total
    if n_levels:
        amounts = privacy.split(total.eps, (share - part, 1 - share + part))
        deltas = privacy.split(total.delta, (LEVELS_DELTA, 1 - LEVELS_DELTA))
        levels = privacy.ApproxDP(amounts[0], deltas[0])
        rest = privacy.ApproxDP(amounts[1], deltas[1])
    if not n_bounds:
        return Stages(None, levels, rest)
    if not gaussian:
        eps, left = privacy.split(rest.eps, (total.eps * part, rest.eps - total.eps * part))
        return Stages(privacy.PureDP(eps), levels, replace(rest, eps=left))
    total_rho = 0.5 / privacy.gaussian_multiplier(rest) ** 2 * _ROOM
    rho, left = privacy.split(total_rho, (part, 1 - part))
    eps = privacy.gaussian_eps(rest.delta, math.sqrt(0.5 / left))
    return Stages(privacy.ZCDP(rho), levels, replace(rest, eps=eps), gaussian=True)


def unknown_variables(request: Request, private: PrivateCodebook, holders: Parties) -> Unknown:
    """Return what has to be released; CodebookError where a type is not public."""
    (source,) = holders.bind(open_rows)
    if not source.rereadable:
        raise errors.FrameError(
            "a private codebook reads the rows several times, and these can be read only once: "
            "give a DataFrame, a list of them or the path of a Parquet file"
        )
    categories, names = formula_variables(request.formula, private.draft)
    missing = tuple(name for name in names if name not in request.codebook)
    require(source, missing)
    declared = {name: private.draft[name].kind for name in missing if name in private.draft}
    declared |= dict.fromkeys(categories.intersection(missing), LEVELLED)
    kinds = {
        name: declared[name] if name in declared else source.kind(name).declares for name in missing
    }
    _require_types(kinds)
    bounds = {name: kind for name, kind in kinds.items() if bounded(kind)}
    levels = {
        name: Categorical((0, 1) if source.kind(name).holds is Holds.WHOLE else ("a", "b"))
        for name, kind in kinds.items()
        if kind == LEVELLED
    }
    logical = tuple(name for name, kind in kinds.items() if kind == LOGICAL)
    return Unknown(bounds, levels, logical)


def _require_types(kinds: Mapping[str, str]) -> None:
    untyped = [name for name, kind in kinds.items() if not kind]
    if untyped:
        written = ", ".join(
            f'{name}="numeric"' if name.isidentifier() else f'**{{{name!r}: "numeric"}}'
            for name in untyped[:6]
        )
        raise errors.CodebookError(
            f"the type of {', '.join(map(errors.quoted, untyped[:6]))} is not public: in tables in "
            "memory, files of text and queries it may follow from cells. Write "
            "codebook=dp.private_codebook("
            f'{written}{", ..." if len(untyped) > 6 else ""}), with "categorical" for levels, or '
            "C(name) in the formula"
        )


def formula_variables(formula: str, names: Iterable[str]) -> tuple[set[str], tuple[str, ...]]:
    """Return the variables inside ``C()``, and all that a formula names.

    >>> formula_variables("y ~ log(x) + C(g) | h", ())
    ({'g'}, ('y', 'x', 'g', 'h'))
    """
    check_size(formula)
    names_of_dot, codes = tuple(names), list[str]()
    if ALL_NAMES.search(formula) and not names_of_dot:
        raise errors.FormulaError(
            f"formula {errors.shorten(formula)!r} names all variables, and a private codebook has "
            'none: write their names, or their types, dp.private_codebook(age="numeric", ...)'
        )
    for start, end in pairwise([-1, *marks(formula), len(formula)]):
        side = formula[start + 1 : end]
        if side.strip():
            codes += chain(*parsed_formula(f"~ {side}", names_of_dot).predictors)
    functions = {code: getattr(getattr(syntax(code), "func", None), "id", "") for code in codes}
    categories = {name for code in codes if functions[code] == "C" for name in variables_in(code)}
    return categories, tuple(dict.fromkeys(name for code in codes for name in variables_in(code)))


def found_text(variables: Mapping[str, Variable]) -> str:
    """Show bounds and levels that were released before an error."""
    return (
        f"\nReleased and charged, free for later calls:\n{Codebook(variables)}" if variables else ""
    )


def one_table(data: object) -> Parties:
    """Return the holder of one table; CodebookError where sites have the rows."""
    holders = parties(data)
    if holders.protocol is not None or holders.others:
        raise errors.CodebookError(
            "a private codebook is released from one table, and here sites have the rows: declare "
            "bounds and levels, or release them first by dp.dp_bounds and dp.dp_levels"
        )
    return holders


def _spec(request: Request) -> Any:
    verb = verb_of(request.verb)
    assert verb is not None
    return verb.spec(request)


def _assumed(
    request: Request,
    private: PrivateCodebook,
    unknown: Unknown,
    holders: Parties,
    mechanism: object,
    ledger: privacy.Ledger | None,
) -> tuple[Request, tuple[privacy.Event, ...]]:
    """Plan the call with declarations in place of those to be released; raise what it refuses.

    Some formulas accept only narrow bounds, and some options only wide ones.
    """
    last: errors.DPModelsError | None = None
    for ends in ((-private.limit, private.limit), (1.0, 2.0)):
        book: dict[str, Variable] = {
            name: private.wide(name, kind) if kind == "date" else Numeric(*ends)
            for name, kind in unknown.bounds.items()
        }
        assumed = replace(request, codebook=request.codebook | book | unknown.levels)
        try:
            return assumed, planned_events(_spec(assumed), holders, mechanism, ledger)
        except errors.DPModelsError as error:
            last = error
    assert last is not None
    raise last


def draft_calls(
    request: Request, private: PrivateCodebook, unknown: Unknown, stages: Stages
) -> tuple[Request, ...]:
    """Return the calls that release levels and bounds; levels first, as they spend delta."""
    calls = []
    draft = replace(request, options={}, attached=False)
    if stages.levels is not None:
        text = " + ".join(map(quote, unknown.levels))
        calls.append(replace(draft, verb=_LEVELS, formula=f"~ {text}", guarantee=stages.levels))
    if stages.bounds is not None:
        wide = {name: private.wide(name, kind) for name, kind in unknown.bounds.items()}
        text = " + ".join(map(quote, wide))
        draft = replace(draft, codebook=request.codebook | wide)
        calls.append(replace(draft, verb=_BOUNDS, formula=f"~ {text}", guarantee=stages.bounds))
    return tuple(calls)


def released(
    calls: Sequence[Request],
    declared: Codebook,
    private: PrivateCodebook,
    holders: Parties,
    ledger: privacy.Ledger | None,
) -> tuple[Codebook, list[Any]]:
    """Release bounds and levels; BudgetError, after the charge, where none were found."""
    variables: dict[str, Variable] = {}
    lacking, results = [], []
    for call in calls:
        result = run_release(_spec(call), holders, "auto", ledger)
        results.append(result)
        if call.verb == _BOUNDS:
            lacking += [name for name, ends in result.found.items() if not ends.is_narrowed]
            variables |= {name: result.codebook[name] for name in result.found}
            continue
        for name, levels in result.levels.items():
            try:
                variables[name] = private.with_levels(name, levels)
            except errors.CodebookError:  # Fewer than two
                lacking.append(name)
    identified = {name: variable for name, variable in variables.items() if name not in lacking}
    if lacking:
        raise errors.BudgetError(
            f"no bounds or levels of {', '.join(map(errors.quoted, lacking))} were found: the "
            "search is charged, and nothing else. Declare them, or give more budget."
            f"{found_text(identified)}"
        )
    return declared | identified, results
