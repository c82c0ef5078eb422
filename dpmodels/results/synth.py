"""The result of a synthetic table: its graph, rows drawn from its model, and estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pandas as pd

from dpmodels.arguments import integer, option
from dpmodels.dates import text_of_day
from dpmodels.errors import ArgumentError, NotAvailable, SyntheticWarning, shorten
from dpmodels.formula.cut_columns import CutColumn, structure_terms
from dpmodels.formula.tally import Margins
from dpmodels.inference.screening_tests import adjusted_pvalues
from dpmodels.noise import Entropy
from dpmodels.postprocess.graphical.comparison import MarginErrors, compare_unused, expected_errors
from dpmodels.postprocess.graphical.sampling import sample, within
from dpmodels.postprocess.graphical.structure import structure_of
from dpmodels.postprocess.residuals import Term
from dpmodels.released import GraphRelease, MarginsRelease
from dpmodels.results.base import Derivation, Result
from dpmodels.results.call import DescribedCall, guarantee_words
from dpmodels.results.derived_table import Estimates
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.synth_estimates import SyntheticEstimates, means, quantiles, regressed, shares
from dpmodels.results.synthetic_source import SyntheticSource
from dpmodels.typing import Axes, Floats, Integers

# Most rows that are drawn at once: a choice.
MOST_ROWS = 100_000_000
# Of a call that gives no number: a choice.
MOST_UNASKED = 1_000_000
NOT_DATA = (
    "synthetic rows: standard errors computed from them are too small; use lm(), glm(), table(), "
    "mean() and quantile() of the dp_synth result"
)


@dataclass(frozen=True, repr=False, eq=False)
class SynthResult(Result):
    """A private synthetic table: released values and public facts only.

    Parameters
    ----------
    columns : tuple of CutColumn
        Its columns as levels.
    joined : tuple of Term
        Products of a structure that was declared for a release of another call.

    Notes
    -----
    The model has the released tables of two columns for the edges of its graph; columns without an
    edge are independent given those between them. :meth:`rows` draws from the model. Estimates
    with valid intervals are those of :meth:`lm`, :meth:`glm`, :meth:`table`, :meth:`mean` and
    :meth:`quantile`, which use the released tables themselves, and the fine counts of numbers
    within their cells. What lies beyond the range in which these are clear of the noise is
    estimated from the tail before it, and intervals count the error of that. Rows are drawn within
    the range.
    """

    call: DescribedCall
    release: GraphRelease | MarginsRelease
    columns: tuple[CutColumn, ...] = ()
    joined: tuple[Term, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in order of the formula."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def source(self) -> SyntheticSource:
        """The released tables, the graph and its model."""
        source = SyntheticSource(self.call, self.release, self.columns, self.joined)
        columns = (
            column.with_rows(
                source.released.table((i,))[:-1], math.sqrt(source.released.cell_variance((i,)))
            )
            for i, column in enumerate(self.columns)
        )
        source = replace(source, columns=tuple(columns))
        columns = (
            column if source.has_uncertain_tail(i) else column.with_light_tails()
            for i, column in enumerate(source.columns)
        )
        return replace(source, columns=tuple(columns))

    @property
    def structure(self) -> str:
        """The cliques of the graph as a formula, such as ``"~ a:b + b:c"``."""
        return f"~ {' + '.join(map(self.source.named, self.source.tree.cliques))}"

    def edges(self) -> pd.DataFrame:
        """Return the edges of the graph, the strongest first.

        Returns
        -------
        DataFrame
            ``first, second``; ``strength``, the share of rows that independence of the two
            columns would misplace, in [0, 1]; ``noise_sd`` of a count of their table, in rows.
        """
        source, released, rows = self.source, self.source.released, []
        for pair in source.tree.edges:
            is_released = pair in released.tables
            noise_sd = math.sqrt(released.cell_variance(pair)) if is_released else math.nan
            names = (source.codes[i] for i in pair)
            rows.append((*names, misplaced(source.model.table(pair)), noise_sd))
        table = pd.DataFrame(rows, columns=["first", "second", "strength", "noise_sd"])
        return table.sort_values("strength", ascending=False, ignore_index=True)

    @cached_property
    def expected_errors(self) -> MarginErrors:
        """Errors that the noise is expected to cause in margins of one, two and three columns.

        By one release that is simulated from the model, with the graph as it is.
        """
        source = self.source
        return expected_errors(source.model, source.released, source.random_words("errors", 0))

    def rows(self, n: int | None = None, *, draw: int = 0, public: object = None) -> pd.DataFrame:
        """Draw rows from the model.

        Parameters
        ----------
        n : int, optional
            How many, from 1 to 100,000,000; by default the released number of rows, at most
            1,000,000.
        draw : int, default 0
            Which draw: the same number gives the same rows.
        public : DataFrame or other table, optional
            Public rows with these columns, such as an earlier survey that was published: never
            protected rows, and none that were drawn from this release. Released tables are shrunk
            towards theirs as far as the noise explains the distance, which raises the expected
            squared error of none of them, from whatever population the public rows are.

        Returns
        -------
        DataFrame
            A column for each of :attr:`names`: categories, numbers within their cells as the
            fine counts are, days as text; missing values where some are detected above the noise.
            ``attrs["dpmodels.synthetic"]``, which ``to_parquet`` writes to the file's metadata,
            says that the rows are synthetic.

        Raises
        ------
        ArgumentError
            If `n` is not a positive whole number, or `public` has no rows or synthetic ones.

        Notes
        -----
        A column or a table of two with 3 degrees of freedom or more is shrunk (James and Stein
        1961), and the graph is chosen again. Estimates and their intervals do not use `public`.
        """
        released = min(max(round(self.source.released.n_rows), 1), MOST_UNASKED)
        n_rows = integer("n", released if n is None else n, 1, MOST_ROWS, ", of synthetic rows")
        entropy = self.source.random_words("rows", integer("draw", draw, 0, MOST_ROWS))
        model = self.source.model if public is None else self.source.model_near(public)
        codes = sample(model, n_rows, entropy)
        columns = {
            column.name: _values(column, codes[:, i], within_cells(column, codes[:, i], entropy))
            for i, column in enumerate(self.columns)
        }
        frame = pd.DataFrame(columns)
        frame.attrs[SyntheticWarning.KEY] = {
            "synthetic": True,
            "formula": self.call.formula,
            "guarantee": guarantee_words(self.release),
            "note": f"{NOT_DATA}.",
            **({"stamp": self.stamp} if self.stamp else {}),
        }
        return frame

    def lm(self, formula: str, *, missing: str = "drop") -> SyntheticEstimates:
        """Fit a linear model by least squares to the released tables of two columns.

        Parameters
        ----------
        formula : str
            ``"income ~ age + sex"``: categories by treatment coding, numbers corrected for what
            their cells hide.
        missing : {"drop"}
            Rows with a missing value in a column of the formula do not count.

        Returns
        -------
        SyntheticEstimates
            Coefficients with `noise_int()`, for these rows, and `conf_int()`, for the population.

        Raises
        ------
        FormulaError
            If a variable is not a column of the table.
        NotAvailable
            If noise hides the regressors, the table of its columns has too many cells, or missing
            values are to be imputed.

        Notes
        -----
        Sums of products of two columns are linear in the released tables: they are unbiased, and
        the model has no part in the coefficients, only in their sampling error. Products of
        columns and missing values need the table of all columns of the formula, which the model
        fills in.
        """
        _require_dropped(missing)
        return regressed(self.source, formula, "gaussian")

    def glm(
        self, formula: str, family: str = "binomial", *, missing: str = "drop"
    ) -> SyntheticEstimates:
        """Fit a logistic or a Poisson regression, as :meth:`lm`, over two points of each cell.

        Parameters
        ----------
        formula : str
            ``"employed ~ age + sex"``; a binomial response has two levels, the second counts.
        family : {"binomial", "poisson"}
            Logit link, or log link.
        missing : {"drop"}
            As for :meth:`lm`.

        Notes
        -----
        `conf_int()` is of the coefficients of the numbers themselves, if the means of all other
        columns follow lines in a number within its cells.
        """
        _require_dropped(missing)
        return regressed(self.source, formula, family)

    def table(self, formula: str) -> SyntheticEstimates:
        """Return the shares of rows by cell of some columns, ``"~ sex + region"``.

        Shares are of the rows that are complete in these columns.
        """
        return shares(self.source, formula)

    def mean(self, formula: str) -> SyntheticEstimates:
        """Return means of a number, ``"~ income"`` or by group ``"income ~ sex"``."""
        return means(self.source, formula)

    def quantile(
        self, formula: str, probs: float | Sequence[float] = (0.25, 0.5, 0.75)
    ) -> SyntheticEstimates:
        """Return quantiles of a number, for all rows or by group, linear within its fine cells.

        Within a cell the groups are taken as alike. Quantiles of whole numbers are whole.

        Parameters
        ----------
        formula : str
            ``"~ income"`` or ``"income ~ sex"``.
        probs : float or sequence of float
            In (0, 1).

        Notes
        -----
        Intervals have whole cells, as the release does not show how rows lie within one.
        """
        return quantiles(self.source, formula, probs)

    def test(self) -> Estimates:
        """Compare the released pairs that the graph does not join with the model.

        Returns
        -------
        Estimates
            ``term, statistic, df, p_value``, the smallest first, adjusted by Holm's method. A small
            p-value speaks against the independence that the model assumes. Without `structure=` the
            graph joins the pairs that differ most, so those of the others are too large.

        Raises
        ------
        NotAvailable
            If all released pairs are joined.
        """
        pairs = compare_unused(self.source.released, self.source.model)
        if not pairs:
            raise NotAvailable(
                "test() has nothing to compare: the graph joins all released pairs, or "
                "structure= was declared and no others were released"
            )
        columns = {
            "term": [self.source.named(pair.term) for pair in pairs],
            "statistic": [pair.statistic for pair in pairs],
            "df": [pair.df for pair in pairs],
            "p_value": adjusted_pvalues(np.array([pair.pvalue for pair in pairs]), "holm"),
        }
        table = pd.DataFrame(columns).sort_values("p_value", ignore_index=True)
        note = (
            "Chi-square statistics of released pairs outside the graph, with noise and sampling; "
            "p-values are adjusted by Holm's method."
        )
        return Estimates(self, "Pairs outside the graph", table, (note,), test="chi2")

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the graph: columns on a circle, edges as wide as they are strong.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        from dpmodels.plots.biplot import graph

        edges, codes = self.edges(), self.source.codes
        ends = (map(codes.index, edges[end]) for end in ("first", "second"))
        pairs = list(zip(*ends, strict=True))
        return graph(codes, pairs, edges["strength"].to_numpy(), **self._picture(ax, caption))

    def _synth(self, structure: str) -> Derivation:
        return table_of_release(self.source, structure)

    derivations: ClassVar = {"synth": _synth}
    _no_intervals = "it is of an estimate; use lm(), glm(), table(), mean() or quantile()"

    def _estimates(self) -> EstimateTable:
        edges, ends = self.edges(), ["first", "second"]
        index = pd.MultiIndex.from_frame(edges[ends])
        labels = {f"{name}_label": edges[name] for name in ends}
        further, strength = {"cell_noise_sd": edges["noise_sd"]}, edges["strength"]
        return table_of_estimates(
            self, index, intervals=False, estimate=strength, labels=labels, further=further
        )

    def _line(self) -> dict[str, object]:
        tree, sizes = self.source.tree, {"nobs": self.nobs, "ncolumns": len(self.columns)}
        return {**sizes, "nedges": len(tree.edges), "ncliques": len(tree.cliques)}

    def _size(self) -> str:
        return f"{len(self.columns)} columns, {len(self.source.tree.edges)} edges"


def _require_dropped(missing: object) -> None:
    if option("missing", missing, ("drop", "impute")) == "impute":
        raise NotAvailable(
            "missing='impute' is not available: no interval of imputed values is known to cover. "
            "Leave it out for rows that are complete in the formula, or columns with missing values"
        )


def table_of_release(source: SyntheticSource, structure: str) -> Derivation:
    """Return a synthetic table of margins that were released before, at no cost.

    `structure` is ``"auto"``, or products of columns that the release has together.
    """
    joined: tuple[Term, ...] = ()
    if structure != "auto":
        factors = tuple(column.category for column in source.columns)
        layout = Margins(source.call.formula, source.call.codebook, factors, ())
        joined = structure_terms(structure, layout)
        missing = (t for t in joined if not any(set(t) <= set(m) for m in source.margins))
        if (term := next(missing, None)) is not None:
            raise ArgumentError(
                f"structure= has {shorten(source.named(term))!r}, and the release given= has no "
                "table of these columns: name products of its tables"
            )
        structure_of(joined, source.sizes)
    return Derivation(source.call, partial(SynthResult, columns=source.columns, joined=joined))


def misplaced(table: Floats) -> float:
    """Return the share of the rows of a table that independence would misplace, in [0, 1]."""
    shares_of = table / table.sum()
    even = np.outer(shares_of.sum(axis=1), shares_of.sum(axis=0))
    return float(np.abs(shares_of - even).sum() / 2)


def within_cells(column: CutColumn, codes: Integers, entropy: Entropy) -> Floats | None:
    """Return numbers spread evenly within their cells; None for a category."""
    if column.number is None:
        return None
    numbers = within(codes, np.array(column.edges), entropy, column.histogram)
    low, step = column.number.lower, column.number.step
    if step:
        numbers = low + step * np.rint((numbers - low) / step)
    return np.clip(numbers, low, column.number.upper)


def _values(column: CutColumn, codes: Integers, numbers: Floats | None) -> object:
    if numbers is None:
        levels = pd.Index(column.category.written or column.levels, dtype=object)
        places = np.where(codes < len(levels), codes, -1)
        return pd.Categorical.from_codes(places, levels, ordered=column.category.ordered)
    assert column.number is not None
    if column.number.date:
        return [None if np.isnan(day) else text_of_day(day) for day in numbers]
    is_whole = column.number.step and float(column.number.step).is_integer()
    if is_whole and not np.isnan(numbers).any():
        return numbers.astype(np.int64)
    return numbers
