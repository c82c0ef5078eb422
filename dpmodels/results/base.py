"""What every result is: it prints as a table; made from a release, it can be saved and copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, NoReturn, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.arguments import boolean, checked_methods, fraction, option
from dpmodels.atomic_files import write_whole
from dpmodels.errors import ArgumentError, FrameError, NotAvailable
from dpmodels.report import Report, Summary
from dpmodels.report.notes import Rank, glossary, ranked, shortened
from dpmodels.request import Request
from dpmodels.results.call import (
    NO_ROW,
    AnyCall,
    Spec,
    caption_of,
    clipped_table,
    guarantee_words,
    n_public_rows,
    reading_line,
    release_facts,
    release_row,
    with_clipping,
)
from dpmodels.results.estimate_table import EstimateTable, legend
from dpmodels.results.store import replay, result_bytes, saved_of
from dpmodels.typing import Axes, Dataset, Picture
from dpmodels.verbs import documented

STAMP: Final = "SIMULATION - NOT PRIVATE"

NO_SCORE = (
    "is not available: accuracy on the private rows is not released with the coefficients; for "
    "public rows compare predict(newdata) with their response"
)
NO_LLF = (
    "of the private rows was not released; for public rows compare predict(newdata) with their "
    "response"
)


@singledispatch
def report_of(result: object) -> Report:
    """Lay out a result as tables of strings; the subpackage ``reports`` registers each class."""
    raise NotAvailable(
        f"no report is registered for {type(result).__name__}: import dpmodels.models"
    )


@singledispatch
def lay_out(result: Printed) -> Report:
    """Return the stamped report of a result; ``models``, above the reports, imports them first."""
    return replace(report_of(result), stamp=result.stamp)


@singledispatch
def noise_at_budgets(fit: object) -> pd.DataFrame:
    """Predict the noise at other budgets; ``models``, which knows the mechanisms, registers it."""
    raise NotAvailable(f"at_budgets() is not available for {type(fit).__name__}")


def other_budgets(fit: object) -> str:
    """Say what larger budgets of :func:`noise_at_budgets` would buy."""
    table = noise_at_budgets(fit)
    now, _, *others = (table[budget] for budget in table)
    texts = []
    for noise in others:
        ratio = float((noise / now).median())
        size = f"{ratio:.2g} times as large"
        if not ratio > 0:
            size = f"{int(noise.notna().sum())} of {len(noise)} estimates identified"
        texts.append(f"{size} at {noise.name}")
    return f"Predicted noise: {', '.join(texts)}; see fit.at_budgets()."


Derived = TypeVar("Derived")


class Refused:
    """An attribute that a result does not have: reading it raises NotAvailable.

    ``hasattr`` returns False, since :class:`NotAvailable` is an ``AttributeError``.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, fit: object, owner: type | None = None) -> NoReturn:
        raise NotAvailable(f"{self._name} {self._why}")


checked_methods(Summary)


@checked_methods
class Printed:
    """Something that prints as a table."""

    def __init_subclass__(cls) -> None:
        checked_methods(cls)

    @property
    def simulated(self) -> bool:
        """Whether it is of a simulation, where nothing is private."""
        return False

    @property
    def stamp(self) -> str | None:
        """The warning on tables and pictures of a simulation, else None."""
        return STAMP if self.simulated else None

    if not TYPE_CHECKING:  # a picture is a method where there is one
        plot = Refused(
            "is not available for this result; some results have plot_scree(), plot_loadings() "
            "or biplot(), and tidy() has the numbers"
        )

    def summary(
        self,
        notes: Literal["short", "all"] = "short",
        *,
        reading: bool = False,
        budgets: bool = False,
    ) -> Summary:
        """Return the printed report, with the labels and units that the codebook has.

        Parameters
        ----------
        notes : {"short", "all"}, default "short"
            Which notes stand below the table, in the order of their importance: at most four, the
            stamp of a simulation included, or all. Limits of the guarantee are always shown.
        reading : bool, default False
            Whether to add a note that interprets the guarantee; ``dp.reading(fit)`` says more.
        budgets : bool, default False
            Whether to add a note on the noise that other budgets would have, predicted from
            public facts; ``fit.at_budgets()`` has the numbers.

        Raises
        ------
        ArgumentError
            If an argument has another value.
        NotAvailable
            If other budgets are asked for and cannot be predicted.
        """
        advice = "; summary().as_latex(), as_html() and as_markdown() return the table as text"
        extent = option("notes", notes, ("short", "all"), advice)
        interpreted = boolean("reading", reading)
        report = self._report()
        if interpreted:
            reading_notes = Rank.GUARANTEE(self._reading())
            report = replace(report, notes=(*report.notes, *reading_notes))
        if boolean("budgets", budgets):
            report = replace(report, notes=(*report.notes, *Rank.GUARANTEE(other_budgets(self))))
        return Summary(shortened(report) if extent == "short" else ranked(report))

    def __str__(self) -> str:
        return self.summary().as_text()

    def help(self) -> Summary:
        """Return the definitions of the terms that the printed report uses.

        Examples
        --------
        >>> import dpmodels as dp
        >>> fit = dp.dp_mean("~ x", {"x": [1, 2] * 50}, codebook=dp.codebook(x=(0, 3)), eps=1.0)
        >>> "Noise sd: The standard deviation" in str(fit.help())
        True
        """
        return Summary(glossary(self._report()))

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Not available: only results of a release can be saved."""
        raise NotAvailable(
            f"save() is not available for {type(self).__name__}; write its tables with "
            "summary().as_text() or tidy().to_csv()"
        )

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def _report(self) -> Report:
        return lay_out(self)

    def _reading(self) -> str:
        return NO_ROW


class Derivation(NamedTuple):
    """What is computed from another result: its call, its kind, and which part of the release."""

    call: AnyCall
    result: Callable[..., object]  # From a call and a release
    take: Callable[..., object] = lambda release: release


class Tabulated(Printed):
    """A result whose numbers are one table of estimates; a subclass writes `_estimates()`."""

    if TYPE_CHECKING:

        def noise_int(self, level: float = 0.95) -> pd.DataFrame:
            """Return intervals of privacy noise alone."""

        def conf_int(self, level: float = 0.95) -> pd.DataFrame:
            """Return intervals of noise and sampling."""

    @property
    def _source(self) -> Any:
        """The result with the call and the release that the estimates come from."""
        return self

    @property
    def simulated(self) -> bool:
        """True if released inside ``dp.simulation``: then nothing here is private."""
        return bool(self._source.release.simulated)

    def _caption(self, *, enabled: bool) -> str | None:
        """Return the caption of a picture, None where it is disabled."""
        return caption_of(self._source.release) if boolean("caption", enabled) else None

    def _picture(self, ax: Axes | None, caption: bool) -> Picture:
        return {"ax": ax, "stamp": self.stamp, "caption": self._caption(enabled=caption)}

    def _draw_intervals(
        self,
        values: object,
        ax: Axes | None,
        level: float,
        caption: bool,
        *,
        rows: slice | NDArray[np.bool_] = slice(None),
        **look: Any,
    ) -> Axes:
        """Draw estimates, or some of them, with both of their intervals."""
        from dpmodels.plots.coefficients import Intervals, coefficients

        intervals = (self.noise_int(level), self.conf_int(level))
        ends = (interval.to_numpy()[rows] for interval in intervals)
        model = Intervals("", np.asarray(values, dtype=np.float64)[rows], *ends)
        return coefficients([model], level=level, **look, **self._picture(ax, caption))

    def _reading(self) -> str:
        return reading_line(self._source.release)

    def _estimates(self) -> EstimateTable:
        raise NotImplementedError

    @property
    def estimates(self) -> EstimateTable:
        """The numbers of this result: keys, values, laws of noise and of the total, labels."""
        return self._estimates()

    def tidy(self) -> pd.DataFrame:
        """Return the estimates, one a row, with the column names of R's broom.

        Returns
        -------
        DataFrame
            Key columns; then ``estimate, std_error, noise_sd, noise_low, noise_high, conf_low,
            conf_high, statistic, p_value, identified``, the same for every result; then further
            columns, and labels of the codebook. Numbers that are not available are nan.
            Intervals have level 0.95: ``noise_low, noise_high`` are those of `noise_int`,
            ``conf_low, conf_high`` those of `conf_int`. Of counts `conf_int` is of shares: these
            are ``proportion_low, proportion_high``, and times the number of complete rows
            ``conf_low, conf_high``. `identified` is a nullable boolean, missing where the noise
            of an estimate is not known.
        """
        return self.estimates.tidy()

    def to_dataset(self, level: float = 0.95) -> Dataset:
        """Return the estimates as a labelled dataset, with intervals of a level.

        Returns
        -------
        Dataset
            The columns of :meth:`tidy` along the key, or along ``row`` where there are several
            keys. `identified` is 1, 0, or nan where it is not known. Attributes of the dataset
            are ``formula, guarantee, mechanism, neighbours, noise, simulated``; of variables
            ``units`` and ``long_name``, where the codebook has them.
        """
        source = self._source
        facts = {name.lower(): text for name, text in release_facts(source.release).items()}
        attrs = {"formula": source.call.formula, **facts, "noise": source.release.info.noise}
        attrs["simulated"] = int(source.release.simulated)
        return self.estimates.to_dataset(attrs, checked_level(level))


@dataclass(frozen=True, repr=False, eq=False)
class Result(Tabulated):
    """A result of one release.

    It is computed from its request and its release. Public values only: it can be
    pickled, copied and saved.

    A subclass is a frozen dataclass that defines `_estimates()` for `tidy()`, `_size()` for its
    repr and `_line()` for `glance()`.

    Labels and units of the codebook stand in the printed report, and labels in
    the last columns of `tidy()`, where there are any.
    """

    # The request; None where a user built the result by hand.
    request: Request | None = field(default=None, init=False, compare=False)

    # Results that are derived from this one, at no cost, by their names in a request.
    derivations: ClassVar[Mapping[str, Callable[..., Derivation]]] = {}

    if TYPE_CHECKING:

        @property
        def call(self) -> Any:
            """The public facts of the request."""

        @property
        def release(self) -> Any:
            """The released values."""

    @property
    def nobs(self) -> float:
        """Number of rows, or of persons who count as one each; nan where it is private."""
        n_rows = n_public_rows(self.release)
        return float("nan") if n_rows is None else float(n_rows)

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole result: its own numbers, then those of the release."""
        return pd.DataFrame([{**self._line(), **release_row(self.release)}])

    def clipped(self) -> pd.DataFrame:
        """Return the shares of values that lie beyond the declared bounds and were clipped.

        Returns
        -------
        DataFrame
            By numeric variable: ``lower, upper``, its declared bounds; ``below, above``, unbiased
            noisy shares of its values beyond them, which may be negative; ``noise_sd`` of each.
            nan where hardly any value may be there.

        Raises
        ------
        NotAvailable
            If they were not counted: the number of rows is private or small beside the noise, or
            ``dp.options(clipping=False)``.
        """
        return clipped_table(self.release, self.call.codebook)

    @documented
    def noise_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals for the non-private values of these rows: privacy noise only.

        Returns
        -------
        DataFrame
            ``lower, upper``, a row for each value; nan or infinite where the release does not
            identify it. The class documents the estimand and the distribution used.

        Raises
        ------
        NotAvailable
            If there are no intervals; the message gives the reason and an alternative.
        """
        return self._noise_int(checked_level(level))

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals for the population's values: noise and sampling.

        Parameters, frame and errors are those of :meth:`noise_int`.
        """
        return self._conf_int(checked_level(level))

    def at_budgets(self) -> pd.DataFrame:
        """Return the noise standard deviations that other budgets would have.

        Predicted from public facts, the codebook and the number of rows, for rows whose numbers
        have a standard deviation of a sixth of their range. Predictions are scaled so that they
        agree with this fit where it has noise of its own. Where sampling units are protected
        each is assumed to have one row. No row is read, nothing is charged.

        Returns
        -------
        DataFrame
            A row for each estimate, a column for each budget: this one, half of it, twice of it,
            and with delta = 1e-6 if this one has no delta. It is nan where fewer than half of
            simulated releases identify the estimate.

        Raises
        ------
        NotAvailable
            If the number of rows is private, a person has several rows, or the mechanism cannot
            be run again on assumed rows.

        Examples
        --------
        >>> import dpmodels as dp
        >>> rows, cb = {"x": [1, 2] * 500}, dp.codebook(x=(0, 3))
        >>> table = dp.dp_mean("~ x", rows, codebook=cb, eps=1.0).at_budgets()
        >>> list(table)
        ['eps = 1', 'eps = 0.5', 'eps = 2', 'eps = 1, delta = 1e-06']
        """
        return noise_at_budgets(self)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the released values and public facts to a netCDF file, for ``dp.load``.

        Parameters
        ----------
        path : path
            Where to write; a failed write leaves no partial file.
        overwrite : bool, default False
            Whether a file that is there already may be replaced. A link never is.

        Raises
        ------
        ArgumentError, FrameError
            If it cannot be written. An existing file is then unchanged.

        Notes
        -----
        A digest in the file detects damage and accidental change. It is not a signature: anyone who
        can change the file can rewrite the digest.
        """
        write_whole(path, result_bytes(self), overwrite=overwrite)

    def __repr__(self) -> str:
        facts = ", ".join(filter(None, (self._size(), guarantee_words(self.release))))
        return f"<{type(self).__name__} {self.call.formula!r}: {facts}>"

    def __reduce__(self) -> tuple[object, ...]:
        saved = saved_of(self)
        return replay.dispatch(type(saved)), (saved,)

    def _derive(self, kind: type[Derived], verb: str, **options: object) -> Derived:
        """Return a result of a kind that is computed from this one, at no cost."""
        part = self.derivations[verb](self, **options)
        request = None if self.request is None else self.request.derive(verb, **options)
        result = cast(Callable[..., Derived], part.result)
        spec = Spec(request, part.call, result)
        return spec.of(part.take(self.release), self.call.ledger, self.call.reason)

    def derived(self, request: Request) -> Spec[object]:
        """Return the specification of a request whose parent is that of this result."""
        if request.verb not in self.derivations:
            raise FrameError(f"request.verb: {request.verb!r} is not computed from its parent")
        try:
            part = self.derivations[request.verb](self, **request.options)
        except TypeError:
            raise FrameError(f"request.options: not those of {request.verb!r}") from None
        return Spec(request, part.call, part.result)

    def _report(self) -> Report:
        report = with_clipping(lay_out(self), self.release, self.call.codebook)
        return replace(report, legend=legend(self.call.codebook))

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._interval(level, population=False)

    def _conf_int(self, level: float) -> pd.DataFrame:
        return self._interval(level, population=True)

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        """Return the intervals of one of both kinds, for results that have both."""
        raise NotAvailable(f"{interval_method(population)} is not available: {self._no_intervals}")

    # The reason, where a subclass does not override one of the methods above.
    _no_intervals: ClassVar[str]

    def _size(self) -> str:
        """Return the size of the result, for its repr."""
        return ""

    def _line(self) -> dict[str, object]:
        """Return the columns of glance() besides those of the release."""
        return {"nobs": self.nobs}


def per_row(instead: str) -> tuple[Refused, Refused, Refused]:
    """Refuse ``scores, fittedvalues, resid``: functions of single private rows."""
    why = (
        "of the private rows would disclose them and do not exist in this result; for public "
        f"rows use {instead}"
    )
    return Refused(why), Refused(why), Refused(why)


def interval_method(population: bool) -> str:
    """Return the name of the method with intervals for the population, or for these rows."""
    return "conf_int()" if population else "noise_int()"


def checked_level(level: object) -> float:
    """Return a valid coverage, or raise ArgumentError; one below a half is an error rate."""
    coverage = fraction("level", level, ", such as 0.95")
    if coverage < 0.5:
        raise ArgumentError(
            f"level={coverage:g}: expected the coverage of an interval, at least 0.5; where "
            f"statsmodels has alpha={coverage:g}, write level={1 - coverage:.12g}"
        )
    return coverage
