"""Run a study: check and price it, then make each release once and record it before the next.

A release is finished if the folder's record lists it with the same request, its saved result is
complete, and the ledger has that result's digest. Any other trace of it is refused, unless
``--again`` names the release.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

import dpmodels as dp
from dpmodels.atomic_files import require_target, write_whole
from dpmodels.digest import release_digest
from dpmodels.disclosures.document import guaranteed, neighbours, pictures
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    DPModelsError,
    FrameError,
    LedgerError,
    did_you_mean,
)
from dpmodels.external_files import conform, parse, read_bytes
from dpmodels.privacy.register import convergence_notes
from dpmodels.report import Summary
from dpmodels.report.html import as_html, document, escaped, picture
from dpmodels.report.notes import separated, shortened
from dpmodels.shell.outputs import content, tell
from dpmodels.shell.study import Study, StudyRelease, canonical_json, read_study

if TYPE_CHECKING:
    import pandas as pd

    from dpmodels.results.base import Result
    from dpmodels.results.plan import PlanResult


# Output option of a command, and the file's extension.
_OF_RELEASE: Final = {"text": "txt", "latex": "tex", "markdown": "md", "json": "json", "csv": "csv"}
_OF_TABLE: Final = {"text": "txt", "latex": "tex", "markdown": "md"}
_INDEX: Final = "index.html"
_DISCLOSURE: Final = ("disclosure.html", "disclosure.md")
_SEVERAL: Final = 3  # Pictures of a result, at most


def planned_files(study: Study) -> Iterator[str]:
    """Yield the names of all files but the ledger and the record."""
    yield from (_INDEX, *_DISCLOSURE)
    for release in study.releases:
        yield f"{release.name}.nc"
        yield from (f"{release.name}.{extension}" for extension in _OF_RELEASE.values())
        yield from (_png(release.name, index) for index in range(_SEVERAL * release.plots))
    for table in study.tables:
        yield from (f"{table.name}.{extension}" for extension in _OF_TABLE.values())


def write_study(study: Study, fits: Mapping[str, Result], session: dp.session) -> list[Path]:
    """Write all files and return their paths, the index page last."""
    parts, paths = [], list[Path]()
    full = [fits[release.name].summary(notes="all") for release in study.releases]
    reports, common = separated([summary.report for summary in full])
    for release, lines in zip(study.releases, reports, strict=True):
        fit = fits[release.name]
        images = pictures(fit) if release.plots else ()
        files = _contents(release.name, _OF_RELEASE, fit.summary(), fit)
        files |= {_png(release.name, index): png for index, (_, png) in enumerate(images)}
        paths += _write(study.out, files)
        file_names = (f"{release.name}.nc", *files)
        parts.append(
            Part(release.name, release.call_text, as_html(shortened(lines)), images, file_names)
        )
    for table in study.tables:
        of = {name: fits[name] for name in table.of}
        table_summary = dp.etable(of, ledger=session.ledger, **table.kwargs).summary()
        files = _contents(table.name, _OF_TABLE, table_summary)
        paths += _write(study.out, files)
        parts.append(Part(table.name, "", table_summary.as_html(), (), tuple(files)))
    author = {"author": study.settings["author"]} if "author" in study.settings else {}
    kwargs = {"title": study.title, **author, **study.disclosure}
    report = dp.disclosure([*fits.values(), session.ledger], **kwargs)
    contents = (report.as_html().encode(), report.as_markdown().encode())
    paths += _write(study.out, dict(zip(_DISCLOSURE, contents, strict=True)))
    register = dp.ledger_report(session.ledger).as_html()
    notes = "".join(f"<li>{escaped(note)}</li>" for note in common)
    parts += [Part("notes", "", f'<ul class="notes">{notes}</ul>')] * bool(common)
    ledger = session.ledger
    sentences = [*guaranteed(ledger.guarantee), neighbours(ledger.adjacency)]
    sentences += convergence_notes(ledger.register()["mechanism"])
    guarantee = "".join(f"<li>{escaped(sentence)}</li>" for sentence in sentences)
    parts += [Part("guarantee", "", f"<ul>{guarantee}</ul>"), Part("ledger", "", register)]
    parts += [Part("disclosure", "", "", (), _DISCLOSURE)]
    html = page(study.title, _facts(study, session), parts)
    return [*paths, *_write(study.out, {_INDEX: html.encode()})]


def _contents(
    name: str, extensions: Mapping[str, str], summary: Summary, fit: Result | None = None
) -> dict[str, bytes]:
    return {
        f"{name}.{extension}": content(how, summary, fit) for how, extension in extensions.items()
    }


def _png(name: str, index: int) -> str:
    return f"{name}-{index + 1}.png"


def _write(folder: Path, files: Mapping[str, bytes]) -> Iterator[Path]:
    for name, data in files.items():
        write_whole(folder / name, data, overwrite=True)
        yield folder / name


def _facts(study: Study, session: dp.session) -> dict[str, str]:
    settings = {
        name.capitalize(): study.settings.get(name) for name in ("author", "subset", "person")
    }
    return {
        **{name: str(value) for name, value in settings.items() if value},
        "Guarantee": session.ledger.guarantee.describe(),
        "Spent": session.ledger.describe(),
    }


# A study's results on one page, and links to its files.


class Part(NamedTuple):
    """One section of a page, with links to its files."""

    name: str
    about: str  # One line below the heading, empty for none
    html: str
    pictures: tuple[tuple[str, bytes], ...] = ()
    files: tuple[str, ...] = ()


def page(title: str, facts: Mapping[str, str], parts: Sequence[Part]) -> str:
    """Return one document of all parts; it links only files of the folder."""
    links = " · ".join(f'<a href="#{quote(part.name)}">{escaped(part.name)}</a>' for part in parts)
    definitions = [
        f"<dt>{escaped(name)}</dt><dd>{escaped(text)}</dd>" for name, text in facts.items()
    ]
    head = [f"<h1>{escaped(title)}</h1>", "<dl>", *definitions, "</dl>", f"<nav>{links}</nav>"]
    return document(title, "\n".join([*head, *(line for part in parts for line in _lines(part))]))


def _lines(part: Part) -> Iterable[str]:
    yield f'<section id="{quote(part.name)}"><h2>{escaped(part.name)}</h2>'
    if part.about:
        yield f"<p><code>{escaped(part.about)}</code></p>"
    yield part.html
    yield from (picture(text, png) for text, png in part.pictures)
    if part.files:
        links = " · ".join(f'<a href="{quote(file)}">{escaped(file)}</a>' for file in part.files)
        yield f"<p>Files: {links}</p>"
    yield "</section>"


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

    def with_release(self, release: StudyRelease, request: str, fit: Result) -> Record:
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
) -> tuple[Record, dict[str, Result]]:
    """Return the record and the finished results; refuse ambiguous ones."""
    record = read_record(study.out)
    fits: dict[str, Result] = {}
    register = session.register()
    for release in study.releases:
        if release.name in again:
            continue
        if release.name in record.releases:
            paid = record.releases[release.name]
            request = request_digest(study, release, session.codebook)
            fits[release.name] = _loaded(study.out, release.name, paid, request, register)
    saved_digests = {release_digest(fit.release) for fit in fits.values()}
    for release in study.releases:
        if release.name not in fits and release.name not in again:
            _require_unasked(release, register, saved_digests)
    return record, fits


def _loaded(folder: Path, name: str, paid: Paid, request: str, register: pd.DataFrame) -> Result:
    """Return a saved result if it is the one that was paid for."""
    hint = f"give it another name, or write --again {name} to pay for it again"
    if paid.asked != request:
        raise ArgumentError(
            f"release {name!r} is already in {str(folder)!r}, with other options, another codebook "
            f"or another table: {hint}"
        )
    try:
        fit: Result = dp.load(folder / f"{name}.nc")
    except FrameError as error:
        raise FrameError(f"release {name!r} was paid for, and {error}: {hint}") from None
    if release_digest(fit.release) != paid.digest or paid.digest not in set(register["digest"]):
        raise LedgerError(f"release {name!r} in {str(folder)!r} is not in the ledger: {hint}")
    return fit


def _require_unasked(
    release: StudyRelease, register: pd.DataFrame, saved_digests: Collection[str]
) -> None:
    is_same = (register["verb"] == f"dp_{release.call.name}") & (register["state"] != "void")
    is_same &= register["formula"] == release.call.formula
    charges = register[is_same & ~register["digest"].isin(saved_digests)]
    if len(charges):
        numbers = ", ".join(map(str, charges.index))
        raise LedgerError(
            f"release {release.name!r}: the ledger has charge {numbers} for the same verb and "
            "formula, and its result is missing; that charge stays spent. Write --again "
            f"{release.name} to pay again"
        )


_READ: Final = ("data", "codebook")


def run_study(path: str, again: Collection[str], *, quiet: bool = False) -> int:
    """Run a study; `again` names releases to pay for again, `quiet` leaves the plan out."""
    study = read_study(path)
    names = [release.name for release in study.releases]
    unknown = [name for name in again if name not in names]
    if unknown:
        meant = did_you_mean(unknown[0], names)
        raise ArgumentError(f"--again {unknown[0]}{meant}: expected one of {', '.join(names)}")
    study.preview_session()
    try:
        study.out.mkdir(exist_ok=True)
    except OSError as error:
        advice = "it is a file" if study.out.exists() else "create its parent folder first"
        raise FrameError(
            f"[study] out = {str(study.out)!r} cannot be created ({type(error).__name__}): "
            f"{advice}, or write the name of another folder"
        ) from None
    with exclusive_folder(study.out):
        preview = study.preview_session()
        charged = len(preview.ledger.entries)
        record, fits = finished_releases(study, preview, again)
        record = _require_files(study, record)
        todo = in_order(study, fits)
        if todo:
            priced = price_releases(preview, todo, study.settings.get("n", preview.n_rows))
            if not quiet:
                tell(priced.summary())
            calls = zip(todo, priced.calls, strict=True)
            if lacking := [release.name for release, call in calls if not call.fits]:
                raise BudgetError(
                    f"the budget does not pay for {', '.join(lacking)}: lower the budgets of "
                    "releases, or leave some out; nothing was read or charged"
                )
        for name in fits:
            tell(f"{name}: already released, not repeated")
        session = study.session(study.ledger)
        _require_uncharged(session, charged)
        fits |= _ask_releases(study, session, todo, record.write(), charged)
        ordered = {release.name: fits[release.name] for release in study.releases}
        files = write_study(study, ordered, session)
        tell(f"{files[-1]}: all tables and pictures; {len(files) - 1:,} more files beside it")
        return 0


def in_order(study: Study, fits: Mapping[str, object]) -> list[StudyRelease]:
    """Return the pending releases: those with a budget first, then those that share the rest."""
    left = [release for release in study.releases if release.name not in fits]
    return sorted(left, key=lambda release: release.call.silent)


def price_releases(
    session: dp.session, todo: Sequence[StudyRelease], n: int | None = None
) -> PlanResult:
    """Price the pending releases; charge nothing and read no row.

    With a number of rows, predict how much of each is identified.
    """
    silent = sum(release.call.silent for release in todo)
    if silent:
        session.split(silent)
    calls = [release.call for release in todo]
    try:
        return session.plan(calls, n=n)
    except DPModelsError:
        for index, release in enumerate(todo):
            try:
                session.plan(calls[: index + 1])
            except DPModelsError as error:
                error.args = (f"release {release.name!r}: {error}",)
                raise
        raise


def _require_files(study: Study, record: Record) -> Record:
    """Refuse files that cannot be written or that no study wrote; record the names of the rest."""
    read = [str(study.path), *(study.settings[name] for name in _READ if name in study.settings)]
    never = [path for pattern in read for path in (pattern, *glob(pattern, recursive=True))]
    files = tuple(planned_files(study))
    try:
        key = "ledger"
        if not study.ledger.exists():
            require_target(study.ledger, never=never)
        key = "out"
        for name in (FILE, *files):
            overwrite = name in (FILE, *record.files)
            require_target(study.out / name, overwrite=overwrite, never=[*never, study.ledger])
    except FrameError as error:
        raise FrameError(f"{error}; or write another {key} = in [study]") from None
    return replace(record, files=tuple(dict.fromkeys((*record.files, *files))))


def _require_uncharged(session: dp.session, charged: int) -> None:
    """Refuse to go on if another process charged the ledger; it may run the same study."""
    if len(session.ledger.entries) != charged:
        raise LedgerError(
            f"{session.ledger.place} was charged by another process meanwhile. Run the study "
            "again: finished releases are in its folder and are not repeated"
        )


def _ask_releases(
    study: Study, session: dp.session, todo: Sequence[StudyRelease], record: Record, charged: int
) -> dict[str, Result]:
    """Make the pending releases; save each result before the next."""
    fits: dict[str, Result] = {}
    silent = sum(release.call.silent for release in todo)
    if silent:
        session.split(silent)
    for release in todo:
        request = request_digest(study, release, session.codebook)
        _require_uncharged(session, charged)
        fit = session.make(release.call)
        charged += 1
        fit.save(study.out / f"{release.name}.nc", overwrite=True)
        record = record.with_release(release, request, fit)
        fits[release.name] = fit
        tell(f"{release.name}: {session.ledger.describe()}")
    return fits


# One process at a time in a folder, if the system has file locks.

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def exclusive_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes; the lock ends with the process."""
    with ExitStack() as stack:
        if fcntl is not None:
            with suppress(OSError):  # A file system without locks
                descriptor = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise LedgerError(
                        f"another process runs a study in {str(folder)!r}: run this one when it "
                        "has ended; nothing was charged"
                    ) from None
        yield
