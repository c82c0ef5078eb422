"""The finished releases of a study, by its folder and its ledger: they are not repeated.

A release is finished if the folder's record lists it with the same request, its saved result is
complete, and the ledger has that result's digest. Any other trace of it is refused, unless
``--again`` names the release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import dpmodels as dp
from dpmodels.atomic_files import write_whole
from dpmodels.digest import release_digest
from dpmodels.errors import ArgumentError, FrameError, LedgerError
from dpmodels.external_files import conform, parse, read_bytes
from dpmodels.shell.study import Study, StudyRelease, canonical_json

FILE: Final = "study.json"
_FORMAT: Final = "dpmodels.study/1"
_MOST_BYTES: Final = 2**24


@dataclass(frozen=True)
class Paid:
    """The digests of one release: of its request and of its result."""

    asked: str
    digest: str


@dataclass(frozen=True)
class Record:
    """The record of a study's folder: its releases and its other files."""

    folder: Path
    releases: Mapping[str, Paid]
    files: tuple[str, ...] = ()

    def write(self) -> Record:
        """Replace the record in one step."""
        releases = {name: asdict(paid) for name, paid in self.releases.items()}
        plain = {"format": _FORMAT, "releases": releases, "files": self.files}
        write_whole(self.folder / FILE, json.dumps(plain, indent=1).encode(), overwrite=True)
        return self

    def with_release(self, release: StudyRelease, request: str, fit: Any) -> Record:
        """Add a release and save the record."""
        paid = Paid(request, release_digest(fit.release))
        return replace(self, releases={**self.releases, release.name: paid}).write()


_SHAPE: Final = {"format": str, "releases": dict[str, Paid], "files": tuple[str, ...]}


def read_record(folder: Path) -> Record:
    """Return the record of a folder, empty if the file is missing."""
    if not (folder / FILE).exists():
        return Record(folder, {})
    try:
        plain = conform(_SHAPE, parse(read_bytes(folder / FILE, _MOST_BYTES)), "it")
    except FrameError as error:
        raise FrameError(f"{str(folder / FILE)!r} is not a record of a study: {error}") from None
    if plain["format"] != _FORMAT:
        raise FrameError(f"{str(folder / FILE)!r} was written by another version of dpmodels")
    return Record(folder, plain["releases"], plain["files"])


def request_digest(study: Study, release: StudyRelease, codebook: dp.Codebook) -> str:
    """Return the digest of a release's request: table, persons, codebook, options."""
    table = ("data", "adjacency", "person", "rows", "subset")
    settings = {name: study.settings.get(name) for name in table}
    settings |= {"csv": study.settings["csv"]} if "csv" in study.settings else {}
    request = [settings, dp.Codebook(codebook).to_dict(), release.json_text]
    return hashlib.sha256(canonical_json(request).encode()).hexdigest()


def finished_releases(
    study: Study, session: dp.session, again: Collection[str]
) -> tuple[Record, dict[str, Any]]:
    """Return the record and the finished results; refuse ambiguous ones."""
    record, fits = read_record(study.out), dict[str, Any]()
    register = session.register()
    for release in study.releases:
        if release.name in again:
            continue
        if release.name in record.releases:
            paid, request = (
                record.releases[release.name],
                request_digest(study, release, session.codebook),
            )
            fits[release.name] = _loaded(study.out, release.name, paid, request, register)
    saved_digests = {release_digest(fit.release) for fit in fits.values()}
    for release in study.releases:
        if release.name not in fits and release.name not in again:
            _require_unasked(release, register, saved_digests)
    return record, fits


def _loaded(folder: Path, name: str, paid: Paid, request: str, register: Any) -> Any:
    """Return a saved result if it is the one that was paid for."""
    hint = f"give it another name, or write --again {name} to pay for it again"
    if paid.asked != request:
        raise ArgumentError(
            f"release {name!r} is already in {str(folder)!r}, with other options, another codebook "
            f"or another table: {hint}"
        )
    try:
        fit = dp.load(folder / f"{name}.nc")
    except FrameError as error:
        raise FrameError(f"release {name!r} was paid for, and {error}: {hint}") from None
    if release_digest(fit.release) != paid.digest or paid.digest not in set(register["digest"]):
        raise LedgerError(f"release {name!r} in {str(folder)!r} is not in the ledger: {hint}")
    return fit


def _require_unasked(release: StudyRelease, register: Any, saved_digests: Collection[str]) -> None:
    """Refuse a release that the ledger charged and whose result is missing."""
    charges = register[
        (register["verb"] == f"dp_{release.call.name}") & (register["state"] != "void")
    ]
    charges = charges[
        (charges["formula"] == release.call.formula) & ~charges["digest"].isin(saved_digests)
    ]
    if len(charges):
        numbers = ", ".join(map(str, charges.index))
        raise LedgerError(
            f"release {release.name!r}: the ledger has charge {numbers} for the same verb and "
            "formula, and its result is missing; that charge stays spent. Write --again "
            f"{release.name} to pay again"
        )
