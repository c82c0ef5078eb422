"""What of a study was released already, as its folder and its ledger tell it: never asked twice.

A release is done where the folder's record has it under the same words, its saved result is whole,
and the ledger holds that result's digest. Whatever else there is of it was paid for and is not here
in that form: then it is refused to ask again, unless that is said by name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import dpmodels as dp
from dpmodels.digest import digest
from dpmodels.errors import ArgumentError, FrameError, LedgerError
from dpmodels.outside import conform, parse, read_bytes
from dpmodels.shell.study import Asked, Study, canonical
from dpmodels.writing import write_whole

FILE: Final = "study.json"
_FORMAT: Final = "dpmodels.study/1"
_MOST_BYTES: Final = 2**24


@dataclass(frozen=True)
class Paid:
    """A release: what stands for all that was asked, and for what came out."""

    asked: str
    digest: str


@dataclass(frozen=True)
class Record:
    """The file of a folder that says which releases and which other files are a study's."""

    folder: Path
    releases: Mapping[str, Paid]
    files: tuple[str, ...] = ()

    def write(self) -> Record:
        """Write the record whole, over the one before."""
        own = {name: asdict(paid) for name, paid in self.releases.items()}
        plain = {"format": _FORMAT, "releases": own, "files": self.files}
        write_whole(self.folder / FILE, json.dumps(plain, indent=1).encode(), overwrite=True)
        return self

    def with_release(self, asked: Asked, words: str, fit: Any) -> Record:
        """Return the record with one release more, on the disk."""
        paid = Paid(words, digest(fit.release))
        return replace(self, releases={**self.releases, asked.name: paid}).write()


_SHAPE: Final = {"format": str, "releases": dict[str, Paid], "files": tuple[str, ...]}


def read_record(folder: Path) -> Record:
    """Return what a folder says of its releases; nothing of one without a record."""
    if not (folder / FILE).exists():
        return Record(folder, {})
    try:
        plain = conform(_SHAPE, parse(read_bytes(folder / FILE, _MOST_BYTES)), "it")
    except FrameError as error:
        raise FrameError(f"{str(folder / FILE)!r} is no record of a study: {error}") from None
    if plain["format"] != _FORMAT:
        raise FrameError(f"{str(folder / FILE)!r} is of another version of dpmodels")
    return Record(folder, plain["releases"], plain["files"])


def asked_of(study: Study, asked: Asked, codebook: dp.Codebook) -> str:
    """Return what stands for all that a release was asked by: table, persons, codebook, words."""
    table = ("data", "adjacency", "person", "rows", "subset")
    said = {name: study.said.get(name) for name in table}
    said |= {"csv": study.said["csv"]} if "csv" in study.said else {}
    own = [said, dp.Codebook(codebook).to_dict(), asked.written]
    return hashlib.sha256(canonical(own).encode()).hexdigest()


def done(
    study: Study, session: dp.session, again: Collection[str]
) -> tuple[Record, dict[str, Any]]:
    """Return the record, and the results that need not be asked for; refuse what is unclear."""
    record, fits = read_record(study.out), dict[str, Any]()
    register = session.register()
    for asked in study.releases:
        if asked.name in again:
            continue
        if asked.name in record.releases:
            own, words = record.releases[asked.name], asked_of(study, asked, session.codebook)
            fits[asked.name] = _loaded(study.out, asked.name, own, words, register)
    known = {digest(fit.release) for fit in fits.values()}
    for asked in study.releases:
        if asked.name not in fits and asked.name not in again:
            _require_unasked(asked, register, known)
    return record, fits


def _loaded(folder: Path, name: str, own: Paid, words: str, register: Any) -> Any:
    """Return a saved result, once it is the one that was paid for."""
    again = f"give it another name, or write --again {name} to pay for it once more"
    if own.asked != words:
        raise ArgumentError(
            f"release {name!r} is in {str(folder)!r} already, for other words, another codebook or "
            f"another table: {again}"
        )
    try:
        fit = dp.load(folder / f"{name}.nc")
    except FrameError as error:
        raise FrameError(f"release {name!r} was paid for, and {error}: {again}") from None
    if digest(fit.release) != own.digest or own.digest not in set(register["digest"]):
        raise LedgerError(
            f"release {name!r} in {str(folder)!r} is not one that the ledger knows: {again}"
        )
    return fit


def _require_unasked(asked: Asked, register: Any, known: Collection[str]) -> None:
    """Refuse a release of which the ledger has a charge whose result is not in the folder."""
    alike = register[(register["verb"] == f"dp_{asked.call.name}") & (register["state"] != "void")]
    alike = alike[(alike["formula"] == asked.call.formula) & ~alike["digest"].isin(known)]
    if len(alike):
        numbers = ", ".join(map(str, alike.index))
        raise LedgerError(
            f"release {asked.name!r}: the ledger has charge {numbers} for the same verb and "
            f"formula, and its result is not here: it stays spent; write --again {asked.name} to "
            "pay once more"
        )
