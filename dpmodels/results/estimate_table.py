"""The table of estimates that every result is: keys, values, errors, intervals, labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from dpmodels.codebook import Codebook
from dpmodels.errors import NotAvailable
from dpmodels.formula.parse import quote
from dpmodels.labels import plain
from dpmodels.privacy import Adjacency
from dpmodels.results.call import INTERCEPT
from dpmodels.typing import Dataset, Floats, TableColumns
from dpmodels.variables import Variable

if TYPE_CHECKING:
    from pandas.arrays import BooleanArray


# The columns of every tidy(), after its key columns.
COLUMNS: Final = (
    *("estimate", "std_error", "noise_sd", "noise_low", "noise_high"),
    *("conf_low", "conf_high", "statistic", "p_value", "identified"),
)
# The attributes of a result with these numbers.
SOURCES: Final = {
    "estimate": "params",
    "std_error": "bse",
    "noise_sd": "bse_noise",
    "statistic": "tvalues",
    "p_value": "pvalues",
    "identified": "identified",
}
Ends = Callable[[float], pd.DataFrame]


@dataclass(frozen=True, eq=False)
class EstimateTable:
    """The estimates of a result, one a row.

    Attributes
    ----------
    keys : DataFrame
        The columns that identify a row.
    numbers : mapping
        Of `COLUMNS`, those that are available; intervals come from the two laws.
    noise, total : callable or None
        Return ``lower, upper`` at a level, of privacy noise alone and of noise and sampling.
    further : mapping
        Columns that only this kind of result has.
    labels : mapping
        By label column, the variable of each row.
    codebook : Codebook
        Labels of variables.
    unit : str
        Unit of the estimates; empty if they have no unit.
    further_intervals : mapping
        Intervals at a level, by the prefix of further columns ``_low, _high``.
    """

    keys: pd.DataFrame
    numbers: Mapping[str, object]
    noise: Ends | None
    total: Ends | None
    codebook: Codebook
    further: Mapping[str, object] = field(default_factory=dict)
    labels: Mapping[str, Iterable[str]] = field(default_factory=dict)
    unit: str = ""
    further_intervals: Mapping[str, Ends] = field(default_factory=dict)

    def tidy(self, level: float = 0.95) -> pd.DataFrame:
        """Return keys, `COLUMNS` with intervals at a level, further columns and labels."""
        low_high = {"noise": self.noise, "conf": self.total, **self.further_intervals}
        ends = {
            f"{kind}_{end}": column
            for kind, law in low_high.items()
            for end, column in zip(("low", "high"), _ends(law, level), strict=True)
        }
        size = len(self.keys)
        columns = {
            name: np.broadcast_to(_floats({**self.numbers, **ends}.get(name, np.nan)), size)
            for name in COLUMNS[:-1]
        }
        extra = {name: column for name, column in ends.items() if name not in columns}
        further = {name: np.asarray(values) for name, values in {**self.further, **extra}.items()}
        identified = {"identified": self._identified(columns)}
        table = pd.DataFrame({**self.keys, **columns, **identified, **further}, self.keys.index)
        return labelled(table, self.codebook, **self.labels)

    def to_dataset(self, attrs: Mapping[str, object], level: float = 0.95) -> Dataset:
        """Return the columns of :meth:`tidy` as variables along one dimension.

        It is named after the key, or ``row`` where there are several keys.
        """
        import xarray as xr

        table, keys = self.tidy(level), list(self.keys)
        along = str(keys[0]) if len(keys) == 1 else "row"
        identified = table["identified"].to_numpy(np.float64, na_value=np.nan)
        columns = {
            str(name): (along, column.to_numpy(), self._about(str(name)))
            for name, column in table.assign(identified=identified).items()
        }
        coords = {name: columns.pop(name) for name in map(str, keys)}
        return xr.Dataset(columns, coords, dict(attrs))

    def _about(self, name: str) -> dict[str, str]:
        variable = self.codebook.get(name)
        if variable is None:
            of_estimate = name in COLUMNS[: COLUMNS.index("statistic")] and self.unit
            return {"units": self.unit} if of_estimate else {}
        about = {"long_name": variable.label, "units": getattr(variable, "unit", "")}
        return {key: text for key, text in about.items() if text}

    def _identified(self, columns: Mapping[str, Floats]) -> BooleanArray:
        """Return a nullable boolean: missing where the noise of an estimate is not known."""
        declared = self.numbers.get("identified")
        if declared is not None and not np.isscalar(declared):
            return pd.array(np.asarray(declared, dtype=bool).ravel(), dtype="boolean")
        finite = pd.array(np.isfinite(columns["estimate"]), dtype="boolean")
        laws = [columns[name] for name in ("noise_sd", "noise_low", "conf_low")]
        if len(finite) and np.isnan(laws).all():
            finite[np.asarray(finite, dtype=bool)] = pd.NA
        return finite


def table_of_estimates(
    result: Any,
    index: pd.Index,
    *,
    further: Mapping[str, object] | None = None,
    labels: Mapping[str, Iterable[str]] | Iterable[str] | str | None = None,
    intervals: bool = True,
    unit: str | Sequence[str] = "",
    **numbers: object,
) -> EstimateTable:
    """Return the table of a result: `numbers`, and its attributes named in `SOURCES`.

    The names of `index` are the key columns, with a final _ where a number has the name; `labels`
    names the variable of each row, or the one of all. Rows of several units have a column `unit`.
    """
    if isinstance(labels, str):
        labels = [labels] * len(index)
    if not isinstance(labels, Mapping):
        labels = {} if labels is None else {"label": labels}
    further = further or {}
    units = {unit} if isinstance(unit, str) else set(unit)
    if len(units) > 1:
        further = {**further, "unit": unit}
    reserved = {*COLUMNS, *further, *labels}
    keys = index.to_frame(index=False)
    keys.columns = pd.Index([f"{key}_" if key in reserved else key for key in index.names])
    sources = {name: source for name, source in SOURCES.items() if name not in numbers}
    available = {name: _available(result, source) for name, source in sources.items()}
    return EstimateTable(
        keys,
        {**available, **numbers},
        result.noise_int if intervals else None,
        result.conf_int if intervals else None,
        result._source.call.codebook,
        further,
        labels,
        units.pop() if len(units) == 1 else "",
    )


def count_table(
    result: Any,
    index: pd.Index,
    counts: object,
    *,
    noise_sd: object,
    further: Mapping[str, object],
    labels: str | None = None,
) -> EstimateTable:
    """Return the table of counts of cells that add up to the number of complete rows.

    Errors and intervals ``conf`` are of the numbers expected among so many rows: intervals are
    those of the shares, times that number. Shares have columns ``proportion``.
    """
    counts, number = np.asarray(counts, dtype=np.float64).ravel(), result.ncomplete or np.nan
    proportion = counts / number
    effect = result._source.release.adjacency.design_effect
    effect = _floats(_available(result, "_sampling_effect", effect))
    variance = _floats(noise_sd) ** 2 + effect * counts * (1 - proportion)
    numbers = {"estimate": counts, "noise_sd": noise_sd, "std_error": np.sqrt(variance)}
    words: TableColumns = {"unit": counted_as(result._source.release.adjacency), "labels": labels}
    words["further"] = {**further, "proportion": proportion}
    table = table_of_estimates(result, index, **words, **numbers)
    intervals = {"proportion": result.conf_int}
    return replace(table, total=lambda x: result.conf_int(x) * number, further_intervals=intervals)


def joined_ends(tables: Sequence[EstimateTable], kind: str) -> Ends:
    """Return the intervals of one kind of several tables, one below the other."""
    names = {f"{kind}_low": "lower", f"{kind}_high": "upper"}

    def ends(level: float) -> pd.DataFrame:
        frames = [table.tidy(level).reindex(columns=list(names)) for table in tables]
        return pd.concat(frames, ignore_index=True).rename(columns=names)

    return ends


def counted_as(neighbours: Adjacency) -> str:
    """Return what a release counts: rows, or persons who count as one row each."""
    return "persons" if neighbours.counts_persons else "rows"


def unit_of(codebook: Codebook, variable: str) -> str:
    """Return the unit of a variable; empty where it has none."""
    return str(getattr(codebook.get(variable), "unit", ""))


def product_unit(first: str, second: str) -> str:
    """Return the unit of a product; empty where a factor has none."""
    if not (first and second):
        return ""
    return f"({first})^2" if first == second else f"({first}) ({second})"


def slope_unit(codebook: Codebook, response: str, term: str) -> str:
    """Return the unit of a coefficient of a linear model; empty where terms are composed."""
    response_unit, variable = unit_of(codebook, response), unit_of(codebook, term)
    if term == INTERCEPT or (term.endswith("]") and term.partition("[")[0] in codebook):
        return response_unit
    return f"{response_unit} per {singular(variable)}" if response_unit and variable else ""


def singular(unit: str) -> str:
    """Return the singular of a unit in English; as it is where that is unclear.

    >>> [singular(unit) for unit in ("years", "countries", "kg", "degrees Celsius", "100 francs")]
    ['year', 'country', 'kg', 'degrees Celsius', '100 francs']
    """
    if not unit.islower() or any(letter.isdigit() for letter in unit) or len(unit) < 4:
        return unit
    if unit.endswith("ies"):
        return f"{unit[:-3]}y"
    if unit.endswith(("ches", "shes", "xes", "sses")):
        return unit[:-2]
    return unit if unit.endswith(("ss", "us", "is", "siemens")) else unit.removesuffix("s")


def _available(result: object, name: str, default: object = np.nan) -> object:
    """Return an attribute of a result, the default where it has none, nan where it refuses it."""
    try:
        return getattr(result, name) if hasattr(type(result), name) else default
    except NotAvailable:
        return np.nan


def _ends(law: Ends | None, level: float) -> tuple[object, object]:
    try:
        ends = law(level) if law else None
    except NotAvailable:
        ends = None
    return (np.nan, np.nan) if ends is None else (ends["lower"], ends["upper"])


def _floats(values: object) -> Floats:
    return np.asarray(values, dtype=np.float64).ravel()


# Labels and units of the codebook, as tables show them.

# A choice: a longer label is truncated; the codebook has it in full.
MOST = 60


def words(name: str, variable: Variable) -> str:
    """Return label and unit on one line, a label of more than 60 characters cut.

    A label equal to the name is left out.

    >>> import dpmodels as dp
    >>> words("age", dp.Numeric(0, 100, label="Age at interview", unit="years"))
    'Age at interview (years)'
    >>> words("age", dp.Numeric(0, 100, label="Age", unit="years"))
    'years'
    """
    label, unit = (_cut(getattr(variable, field_name, "")) for field_name in ("label", "unit"))
    label = "" if label.casefold() == name.casefold() else label
    return f"{label} ({unit})" if label and unit else label or unit


def _cut(text: str) -> str:
    line = plain(text)
    return line if len(line) <= MOST else f"{line[: MOST - 3].rstrip()}..."


def legend(codebook: Codebook) -> tuple[tuple[str, str], ...]:
    """Return the variables that have a label or a unit, as tables name them, with both."""
    return tuple(
        (code, text)
        for name, variable in codebook.items()
        if (text := words(name, variable))
        for code in dict.fromkeys((quote(name), name))
    )


def axis_title(text: str, codebook: Codebook) -> str:
    """Return the title of an axis with the labels and units of the variables that it names.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(dis=dp.Numeric(0, 60, label="chronic diseases"), age=(0, 90))
    >>> axis_title("Mean of dis", cb), axis_title("Mean of log(dis)", cb)
    ('Mean of chronic diseases', 'Mean of log(dis)')
    """
    for name, variable in codebook.items():
        code, label = quote(name), words(name, variable)
        if label and (text == code or text.endswith(f" of {code}")):
            shown = f"{name} ({label})" if label == getattr(variable, "unit", "") else label
            return f"{text.removesuffix(code)}{shown}"
    return text


def labelled(table: pd.DataFrame, codebook: Codebook, **names: Iterable[str]) -> pd.DataFrame:
    """Add columns of labels to a tidy table, where any variable has one.

    A keyword names the column and gives the variable of each row, as formulas name it; a column of
    a category gets the label of the category, an expression none.
    """
    label_of = {quote(name): variable.label for name, variable in codebook.items()}
    if not any(label_of.values()):
        return table
    for column, codes in names.items():
        labels = [label_of.get(code) or label_of.get(code.partition("[")[0], "") for code in codes]
        table = table.assign(**{column: labels})
    return table
