"""Descriptions in netCDF files: counts or quantiles, and what was asked."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from typing import Any, NamedTuple

from dpmodels.codebook import Codebook
from dpmodels.released import CountsRelease, QuantilesRelease
from dpmodels.results.described_call import DescribedCall, TableFacts
from dpmodels.results.store import Saved, terms, write_file

MEAN, VAR, TTEST = "dpmodels.mean/1", "dpmodels.var/1", "dpmodels.ttest/1"
QUANTILE, HIST = "dpmodels.quantile/1", "dpmodels.hist/1"
TABLE, OVERVIEW = "dpmodels.table/1", "dpmodels.overview/1"

Dimensions = tuple[str, ...]

_COUNTS: dict[str, Dimensions] = {"values": ("part",)}
_QUANTILES: dict[str, Dimensions] = {
    "values": ("group", "prob", "place"),
    "drawn": ("group", "prob"),
    "counts": ("group",),
    "concentration": ("prob",),
}
_COUNTS_WORDS, _QUANTILES_WORDS = ("law", "noise_sd", "step", "paired"), ("count_sd",)


class Description(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    call : DescribedCall
        What was asked.
    release : CountsRelease or QuantilesRelease
        What was released.
    own : dict
        Plain values of the result itself, lists as tuples.
    """

    call: DescribedCall
    release: Any
    own: dict[str, Any]


def write_described(
    path: str | PathLike[str],
    written: str,
    call: DescribedCall,
    release: CountsRelease | QuantilesRelease,
    **own: Any,
) -> None:
    """Write a description; what is read back prints the same tables.

    Parameters
    ----------
    path : path
        Where to write.
    written : str
        The format, such as ``MEAN``.
    call, release : DescribedCall, CountsRelease or QuantilesRelease
        What was asked and released.
    **own
        What else the result is made of: numbers, strings and sequences of
        them.
    """
    counted = isinstance(release, CountsRelease)
    dimensions = _COUNTS if counted else _QUANTILES
    words = _COUNTS_WORDS if counted else _QUANTILES_WORDS
    arrays = {name: (places, getattr(release, name)) for name, places in dimensions.items()}
    asked = {
        "formula": call.formula,
        "codebook": call.codebook.to_dict(),
        "tables": [asdict(table) for table in call.tables],
        "ledger": call.ledger,
        "reason": call.reason,
    }
    plain = {name: getattr(release, name) for name in words}
    write_file(asked, release, {**plain, "own": own}, arrays, path, written)


def read_described(saved: Saved) -> Description:
    """Read what :func:`write_described` wrote."""
    asked, plain = saved.facts["call"], saved.facts["release"]
    call = DescribedCall(
        formula=asked["formula"],
        codebook=Codebook.from_dict(asked["codebook"]),
        tables=tuple(map(_table, asked["tables"])),
        ledger=asked["ledger"],
        reason=asked["reason"],
    )
    own = {name: tuple(v) if isinstance(v, list) else v for name, v in plain["own"].items()}
    counted = "law" in plain
    words = _COUNTS_WORDS if counted else _QUANTILES_WORDS
    arrays = {name: saved.arrays[name] for name in (_COUNTS if counted else _QUANTILES)}
    kind: type[Any] = CountsRelease if counted else QuantilesRelease
    release = kind(**arrays, **{name: plain[name] for name in words}, **terms(saved))
    return Description(call, release, own)


def _table(plain: dict[str, Any]) -> TableFacts:
    levels = tuple(map(tuple, plain["levels"]))
    return TableFacts(**{**plain, "factors": tuple(plain["factors"]), "levels": levels})
