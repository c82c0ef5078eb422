"""``etable``: results side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from dpmodels.arguments import (
    boolean,
    checked_keywords,
    fraction,
    integer,
    lists_values,
    option,
    text,
)
from dpmodels.errors import ArgumentError, quoted
from dpmodels.formula.parse import quote
from dpmodels.privacy import Ledger, check_ledger
from dpmodels.results.base import Result, checked_level
from dpmodels.results.etable import STATISTICS, ETable, Line, Look, accounts, columns_of
from dpmodels.results.etable_columns import ACCEPTED, Column, chosen, merged

Statistic = Literal["std_error", "noise_sd", "statistic", "p_value", "noise_int", "conf_int"]

# Conventions of printed tables: levels of one, two and three stars.
STARS: Final = (0.05, 0.01, 0.001)
STATS: Final = ("nobs", "r_squared", "std_dev", "percent")
_MOST_DIGITS: Final = 6


@checked_keywords("dp.etable")
def etable(
    models: Result | Iterable[object] | Mapping[str, object],
    *more: Result | Iterable[object] | Mapping[str, object],
    keep: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    labels: Mapping[str, str] | bool = False,
    statistic: Statistic | Sequence[Statistic] | None = ("std_error", "noise_sd"),
    stars: bool | Sequence[float] = False,
    exponentiate: bool = False,
    stats: str | Sequence[str] | None = None,
    privacy: bool = True,
    digits: int = 2,
    level: float = 0.95,
    title: str = "Private results side by side",
    notes: str | Sequence[str] = (),
    ledger: Ledger | None = None,
) -> ETable:
    """Lay results out side by side: no row is read, and nothing is spent.

    Parameters
    ----------
    models : result, list of results or mapping
        Fresh or loaded, in any mixture: regressions, classifiers, means, variances, t-tests,
        quantiles, surveys, correlations, principal components. A mapping names the columns; lists
        within it, or within a list, stand together, below the name where they have one.
    *more
        Further ones: ``etable(m1, m2)`` is ``etable([m1, m2])``.
    keep : str or list of str, optional
        Rows to show, in this order: names, or regular expressions that are searched for in the
        names. ``keep="age"`` is the row of that name, where there is one.
    drop : str or list of str, optional
        Rows to leave out, as for `keep`.
    labels : mapping or bool, default False
        What to print for names, in interactions and functions too: a mapping, or the codebook's
        labels where it is True.
        By default names are printed, with the codebook's labels in a legend below.
    statistic : str or list of str, default ("std_error", "noise_sd")
        What stands below each estimate: its ``(standard error)`` of sampling and noise, its
        ``[noise sd]``, of the privacy noise alone, ``"statistic"``, ``"p_value"``, ``"noise_int"``
        or ``"conf_int"``; None for nothing.
    stars : bool or list of float, default False
        Mark p-values below 0.05, 0.01 and 0.001, or other levels. Off by default: a noisy
        coefficient without a star may only be hidden by noise or sampling.
    exponentiate : bool, default False
        Show odds ratios and rate ratios of logistic and Poisson regressions, with standard errors
        by the delta method; other columns stay.
    stats : str or list of str, optional
        Statistics of the fit by their names in ``glance()``; by default ``"nobs"``, ``"r_squared"``
        and, of components, ``"std_dev"`` and ``"percent"``. ``[]`` for none.
    privacy : bool, default True
        Whether rows state eps, delta or rho, the mechanism, its noise distribution and the
        neighbours.
    digits : int, default 2
        Significant digits of errors, 1 to 6; estimates end where their errors do.
    level : float, default 0.95
        Coverage of intervals, in (0, 1).
    title : str
        Of the table.
    notes : str or list of str, optional
        Further notes below it.
    ledger : Ledger, optional
        The ledger of the releases: a note then states the total of all its charges. Without one
        budgets are never added up.

    Returns
    -------
    ETable
        Prints as a table; ``as_html() as_latex() as_markdown() as_gt() frame() tidy() glance()``.

    Raises
    ------
    ArgumentError
        If a result has no column, or an option is invalid.

    Notes
    -----
    Coefficients that noise leaves open are shown as such, never as a number. If one result is
    simulated the whole table is stamped, and its column says so. Results of one release, such as
    ``m.lm`` of the same moments, are marked: their budget was paid once. Where public facts show
    that results come from different tables, a note says which.

    Examples
    --------
    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), wage=(0, 80), sex=["F", "M"])
    >>> rows = {"age": [20, 40, 60] * 900, "wage": [10, 30, 20] * 900, "sex": ["F", "M"] * 1350}
    >>> m = dp.dp_moments("~ wage + age + sex", rows, codebook=cb, eps=2.0, delta=1e-6)
    >>> table = dp.etable([m.lm("wage ~ age"), m.lm("wage ~ age + sex")], keep=["age", "sex"])
    >>> table.tidy()[["model", "term"]].to_numpy().tolist()
    [['(1)', 'age'], ['(2)', 'age'], ['(2)', 'sex[T.M]']]
    >>> table.accounts
    ('(1) and (2) share one release, whose budget was paid once.',)
    """
    look = look_of(statistic, stars, exponentiate, privacy, digits, level, title, notes)
    columns = _columns([models, *more] if more else models, look.level)
    if exponentiate:
        if not any(column.link for column in columns):
            raise ArgumentError(
                "exponentiate=True: no column is of a logistic or Poisson regression; leave it out"
            )
        columns = tuple(column.exponentiated() for column in columns)
    look = replace(look, stats=_stats(stats, columns), words=_words(labels, columns))
    lines = _lines(columns, _texts("keep", keep), _texts("drop", drop))
    check_ledger(ledger)
    return ETable(columns, lines, look, accounts(columns, ledger))


def look_of(
    statistic: object,
    stars: object,
    exponentiate: object,
    privacy: object,
    digits: object,
    level: object,
    title: object,
    notes: object,
) -> Look:
    """Return how columns are shown, as far as that does not depend on the results."""
    statistics = _texts("statistic", statistic)
    for name in statistics:
        option("statistic", name, STATISTICS)
    boolean("exponentiate", exponentiate)
    return Look(
        title=text("title", title),
        statistic=statistics,
        stars=_stars(stars),
        stats=(),
        privacy=boolean("privacy", privacy),
        digits=integer("digits", digits, 1, _MOST_DIGITS),
        level=checked_level(level),
        words=None,
        notes=_texts("notes", notes),
    )


def _columns(models: object, level: float) -> tuple[Column, ...]:
    results = list(_results_with_names(models))
    if not results:
        raise ArgumentError("models= has no results; write dp.etable([fit, other])")
    columns = []
    for number, (group, name, result) in enumerate(results, start=1):
        called = name or f"({number})"
        called += " simulated" if result.simulated else ""
        for column in columns_of(result, level):
            head, above = called, group or column.response
            if column.component:
                head, above = column.component, f"{group} {called}".strip()
            columns.append(replace(column, head=head, above=above, number=number))
    return tuple(columns)


def _results_with_names(models: object, group: str = "") -> Iterable[tuple[str, str, Result]]:
    """Yield results with their group's name and their own, blank where missing."""
    if isinstance(models, Result):
        yield group, "", models
    elif isinstance(models, Mapping):
        for name, value in models.items():
            called = text("a name of models", name)
            if isinstance(value, Result):
                yield group, called, value
            else:
                yield from _results_with_names(value, called)
    elif lists_values(models):
        for value in models:
            yield from _results_with_names(value, group)
    else:
        raise ArgumentError(
            f"models: an object of type {type(models).__name__} is not a result; write a list of "
            f"fits, or a mapping of names to fits: {ACCEPTED}"
        )


def _lines(
    columns: Sequence[Column], keep: tuple[str, ...], drop: tuple[str, ...]
) -> tuple[Line, ...]:
    parts: dict[str, list[list[str]]] = {}
    for column in columns:
        parts.setdefault(column.part, []).append(list(column.cells.index))
    rows = {part: merged(indexes) for part, indexes in parts.items()}
    names = list(dict.fromkeys(name for names_of_part in rows.values() for name in names_of_part))
    selected = chosen(names, keep, drop)
    order = selected if keep else names
    selected_set = set(selected)
    return tuple(
        Line(part, name, names_of_part[name])
        for part, names_of_part in rows.items()
        for name in (order if keep else names_of_part)
        if name in names_of_part and name in selected_set
    )


def _stars(stars: object) -> tuple[float, ...]:
    if isinstance(stars, bool):
        return STARS if stars else ()
    if not lists_values(stars):
        raise ArgumentError(
            f"stars={quoted(stars)}: expected True, False or levels like [0.05, 0.01]"
        )
    levels = tuple(sorted((fraction("stars", level) for level in stars), reverse=True))
    if not 1 <= len(set(levels)) == len(levels) <= len(STARS):
        raise ArgumentError(f"stars: expected one to {len(STARS)} different levels")
    return levels


def _stats(stats: object, columns: Sequence[Column]) -> tuple[str, ...]:
    available = list(dict.fromkeys(name for column in columns for name in column.stats))
    if stats is None:
        return tuple(name for name in STATS if name in available)
    requested = _texts("stats", stats)
    for statistic in requested:
        option("stats", statistic, available)
    return requested


def _words(labels: object, columns: Sequence[Column]) -> Mapping[str, str] | None:
    """Return the printed labels of names; None where names stay and a legend has the labels."""
    if isinstance(labels, Mapping):
        return {text("labels", name): text("labels", label) for name, label in labels.items()}
    if not isinstance(labels, bool):
        raise ArgumentError(f"labels={quoted(labels)}: expected True, False or {{'age': 'Age'}}")
    if not labels:
        return None
    books = [column.result.call.codebook for column in columns]
    return {
        quote(name): variable.label
        for book in reversed(books)
        for name, variable in book.items()
        if variable.label
    }


def _texts(name: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(text(name, item) for item in (value if lists_values(value) else (value,)))
