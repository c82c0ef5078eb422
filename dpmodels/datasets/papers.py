"""Small public tables, and those of the papers as coded matrices or simulated in their shape."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, did_you_mean
from dpmodels.typing import Floats, Integers, Numbers

# Public bounds: round numbers from the descriptions of the fields, not from rows.
_BYTES = 2.0**30
KDDCUP: dict[str, float] = {
    **{
        "duration": 86_400,
        "src_bytes": _BYTES,
        "dst_bytes": _BYTES,
        "land": 1,
        "wrong_fragment": 3,
    },
    **{"urgent": 3, "hot": 100, "num_failed_logins": 10, "logged_in": 1, "num_root": 1000},
    **{"num_compromised": 1000, "root_shell": 1, "su_attempted": 2, "num_file_creations": 100},
    **{"num_shells": 10, "num_access_files": 10, "is_guest_login": 1, "count": 511},
    **{"srv_count": 511, "dst_host_count": 255, "dst_host_srv_count": 255},
}
KDDCUP_LEFT_OUT = ("num_outbound_cmds", "is_host_login", "label")
CENSUS: dict[str, float] = {
    **{"age": 90, "wage_per_hour": 9999, "capital_gains": 99_999, "capital_losses": 9999},
    **{"dividends_from_stocks": 99_999, "instance_weight": 20_000},
    **{"num_persons_worked_for_employer": 6, "weeks_worked_in_year": 52},
}
PIXELS = 784


@dataclass(frozen=True)
class PaperTable:
    """A coded table with what the papers do with it: every entry in [0, 1]."""

    name: str  # simulated ones say so
    rows: Floats  # shape (rows, columns)
    label: Integers  # shape (rows,): a class to be predicted
    components: int  # how many the papers keep

    @property
    def columns(self) -> dict[str, Floats]:
        """The table as named columns, for the verbs."""
        return {f"x{index}": column for index, column in enumerate(self.rows.T, start=1)}

    @property
    def codebook(self) -> Codebook:
        """Every column from 0 to 1."""
        return Codebook.uniform(list(self.columns), (0, 1))


def paper_table(
    name: str, rows: int | None = None, folder: str | os.PathLike[str] | None = None
) -> PaperTable:
    """Return a table of the papers, or simulated rows of its shape if its file is missing.

    ``"kddcup99"``: network connections, 494,021 rows, 116 columns, 4 components. ``"census"``:
    persons of the census, 199,523 rows, 513 columns, 8 components. ``"mnist"``: handwritten
    digits, 60,000 rows, 784 columns, 10 components.

    `rows` is how many of them, all by default; `folder` is where
    ``kddcup99_10pct.parquet``, ``census_income_kdd.parquet`` and ``mnist.npz`` are, by default the
    environment's ``DPMODELS_DATA``. ArgumentError if the name is unknown.

    >>> paper_table("kddcup99", rows=50, folder="nowhere").rows.shape
    (50, 116)
    """
    if name not in READERS:
        raise ArgumentError(
            f"name={name!r}{did_you_mean(name, READERS)}: expected one of "
            f"{', '.join(map(repr, READERS))}"
        )
    file, read, shape, components = READERS[name]
    path = Path(folder or os.environ.get("DPMODELS_DATA", "")) / file
    has_file = path.is_file()
    n_rows = shape[0] if rows is None else min(rows, shape[0])
    if has_file:
        table, label = read(path)
        order = np.random.default_rng(0).permutation(len(table))[:n_rows]
        table, label = table[order].astype(float), label[order]
    else:
        table, label = indicator_rows(shape[1], n_rows)
    table_name = name if has_file else f"simulated, shape of {name}"
    return PaperTable(table_name, table, label, components)


def _coded(frame: pd.DataFrame, top: dict[str, float]) -> NDArray[np.float32]:
    """Code categories as indicators of every level, numbers as shares of their bound."""
    parts: list[NDArray[np.float32]] = []
    for name in frame.columns:
        if name in top or name.endswith("_rate"):
            fractions = frame[name].to_numpy(np.float64) / top.get(name, 1.0)
            parts.append(np.clip(fractions, 0, 1).astype(np.float32)[:, None])
        else:
            codes, levels = pd.factorize(frame[name], sort=True)
            parts.append(np.eye(len(levels), dtype=np.float32)[codes])
    return np.hstack(parts)


def _kddcup(path: Path) -> tuple[Numbers, Integers]:
    frame = pd.read_parquet(path)
    attack = np.asarray(frame["label"].astype(str).str.strip(".") != "normal", dtype=np.int64)
    return _coded(frame.drop(columns=list(KDDCUP_LEFT_OUT)), KDDCUP), attack


def _census(path: Path) -> tuple[Numbers, Integers]:
    frame = pd.read_parquet(path)
    frame = frame[frame["split"] == "train"].drop(columns="split")
    income = frame.iloc[:, -1].astype(str)
    rich = np.asarray(income.str.contains("50000+", regex=False), dtype=np.int64)
    return _coded(frame, CENSUS), rich


def _mnist(path: Path) -> tuple[Numbers, Integers]:
    with np.load(path) as data:
        images, digit = data["x_train"], data["y_train"]
    table = images.reshape(len(images), PIXELS).astype(np.float32) / np.float32(255)
    return table, np.asarray(digit == 0, dtype=np.int64)


Reader = Callable[[Path], tuple[Numbers, Integers]]
READERS: dict[str, tuple[str, Reader, tuple[int, int], int]] = {
    "kddcup99": ("kddcup99_10pct.parquet", _kddcup, (494_021, 116), 4),
    "census": ("census_income_kdd.parquet", _census, (199_523, 513), 8),
    "mnist": ("mnist.npz", _mnist, (60_000, PIXELS), 10),
}


# Simulated rows of the papers on private covariance and principal components.

# Variances of the synthetic table of Chaudhuri, Sarwate and Sinha (2012).
NEAR_OPTIMAL_VARIANCES = (0.5, 0.30, 0.04, 0.03, 0.02, 0.01, 0.004, 0.003, 0.001, 0.001)


def zipf_rows(
    columns: int, rows: int = 50_000, power: float = 3.0, bins: int = 4, seed: int = 0
) -> Floats:
    """Return correlated normal rows whose lengths follow a Zipf law, shape (rows, columns).

    A row has length ``2**(i - bins)``, i from 1 to `bins`, with a probability proportional to
    ``i**-power``, as in Dong, W., Liang, Y. and Yi, K. (2022). "Differentially private covariance
    revisited." NeurIPS.

    >>> zipf_rows(3, rows=5).shape
    (5, 3)
    """
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, columns)) @ rng.uniform(size=(columns, columns))
    table -= table.mean(axis=0)
    weights = np.arange(1.0, bins + 1) ** -power
    lengths = 2.0 ** (rng.choice(bins, rows, p=weights / weights.sum()) + 1 - bins)
    return np.asarray(table * (lengths / np.linalg.norm(table, axis=1))[:, None])


def near_optimal_rows(rows: int = 5_000, seed: int = 0) -> Floats:
    """Return normal rows with ten given variances, shrunk into the unit ball: shape (rows, 10).

    From Chaudhuri, K., Sarwate, A. D. and Sinha, K. (2012). "Near-optimal differentially private
    principal components." NeurIPS.
    """
    rng = np.random.default_rng(seed)
    size = len(NEAR_OPTIMAL_VARIANCES)
    rotation, _ = np.linalg.qr(rng.normal(size=(size, size)))
    table = (rng.normal(size=(rows, size)) * np.sqrt(NEAR_OPTIMAL_VARIANCES)) @ rotation.T
    return np.asarray(table / np.maximum(np.linalg.norm(table, axis=1), 1.0)[:, None])


def indicator_rows(
    columns: int, rows: int, classes: int = 8, seed: int = 0
) -> tuple[Floats, Integers]:
    """Return rows of zeros and ones, shape (rows, columns), and labels 0 or 1, shape (rows,).

    A stand-in, of any shape, for tables of coded categories: rows come from a few classes, and the
    label depends on them.
    """
    rng = np.random.default_rng(seed)
    probabilities = rng.beta(0.15, 0.6, size=(classes, columns))
    weights = 1.0 / np.arange(1, classes + 1)
    member = rng.choice(classes, rows, p=weights / weights.sum())
    table = (rng.random((rows, columns)) < probabilities[member]).astype(float)
    return table, np.asarray(member % 2, dtype=np.int64)


# The RAND Health Insurance Experiment: 20,190 person-years, 10 variables.

# Rows of a person: the experiment enrolled families for three or five years, a row for each. The
# table has no ids of persons.
MOST_YEARS: Final = 5


def load_randhie() -> pd.DataFrame:
    """Return the table that statsmodels ships, 20,190 rows.

    Returns
    -------
    DataFrame
        Columns ``mdvis lncoins idp lpi fmde physlm disea hlthg hlthf hlthp``.

    References
    ----------
    .. [1] Cameron, A. C. and Trivedi, P. K. (2005). "Microeconometrics:
       Methods and Applications." Cambridge University Press.
    """
    from statsmodels.datasets.randhie import load_pandas

    table: pd.DataFrame = load_pandas().data
    return table


def randhie_codebook() -> Codebook:
    """Return its codebook.

    The bounds are round numbers that follow from the variables' definitions
    and from the experiment's design, not from the rows: coinsurance is at
    most 100 %, incentive payments and expenditure limits are a few thousand
    dollars at most, a year has 100 doctor's visits or fewer for all but a
    handful of people, whose counts are clipped.

    Examples
    --------
    >>> from dpmodels.datasets import randhie_codebook
    >>> print(randhie_codebook().select(["mdvis", "idp"]))
    variable  type     declared  unit    label
    mdvis     integer  0 to 100  visits  outpatient visits to a doctor in a year
    idp       integer  0 to 1            individual deductible plan
    """
    with resources.as_file(resources.files(__package__) / "randhie.json") as path:
        return Codebook.load(path)
