"""The files of a study: tables, pictures and data of each release, and one page of all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import dpmodels as dp
from dpmodels.disclosures.document import pictures
from dpmodels.privacy.register import convergence_notes
from dpmodels.report import Summary
from dpmodels.report.html import document, escaped, picture
from dpmodels.shell.outputs import content
from dpmodels.shell.study import Study
from dpmodels.writing import write_whole

# Option of a verb's command, and the end of the file's name.
_OF_RELEASE: Final = {"text": "txt", "latex": "tex", "markdown": "md", "json": "json", "csv": "csv"}
_OF_TABLE: Final = {"text": "txt", "latex": "tex", "markdown": "md"}
_INDEX: Final = "index.html"
_DISCLOSURE: Final = ("disclosure.html", "disclosure.md")
_SEVERAL: Final = 3  # Pictures of a result, at most


def planned_files(study: Study) -> Iterator[str]:
    """Give the names of all files but the ledger and the record."""
    yield from (_INDEX, *_DISCLOSURE)
    for asked in study.releases:
        yield f"{asked.name}.nc"
        yield from (f"{asked.name}.{end}" for end in _OF_RELEASE.values())
        yield from (_png(asked.name, place) for place in range(_SEVERAL * asked.plots))
    for table in study.tables:
        yield from (f"{table.name}.{end}" for end in _OF_TABLE.values())


def write_study(study: Study, fits: Mapping[str, Any], session: dp.session) -> list[Path]:
    """Write all files and return their places, the page of all last."""
    parts, places = [], list[Path]()
    for asked in study.releases:
        fit = fits[asked.name]
        drawn = pictures(fit) if asked.plots else ()
        files = _contents(asked.name, _OF_RELEASE, fit.summary(), fit)
        files |= {_png(asked.name, place): png for place, (_, png) in enumerate(drawn)}
        places += _write(study.out, files)
        held = (f"{asked.name}.nc", *files)
        parts.append(Part(asked.name, asked.told, fit.summary().as_html(), drawn, held))
    for table in study.tables:
        of = {name: fits[name] for name in table.of}
        made = dp.etable(of, ledger=session.ledger, **table.words).summary()
        files = _contents(table.name, _OF_TABLE, made)
        places += _write(study.out, files)
        parts.append(Part(table.name, "", made.as_html(), (), tuple(files)))
    author = {"author": study.said["author"]} if "author" in study.said else {}
    words = {"title": study.title, **author, **study.disclosure}
    report = dp.disclosure([*fits.values(), session.ledger], **words)
    both = (report.as_html().encode(), report.as_markdown().encode())
    places += _write(study.out, dict(zip(_DISCLOSURE, both, strict=True)))
    register = dp.ledger_report(session.ledger).as_html()
    parts += [Part("ledger", "", register), Part("disclosure", "", "", (), _DISCLOSURE)]
    whole = page(study.title, _facts(study, session), parts)
    return [*places, *_write(study.out, {_INDEX: whole.encode()})]


def _contents(
    name: str, ends: Mapping[str, str], summary: Summary, fit: Any = None
) -> dict[str, bytes]:
    return {f"{name}.{end}": content(how, summary, fit) for how, end in ends.items()}


def _png(name: str, place: int) -> str:
    return f"{name}-{place + 1}.png"


def _write(folder: Path, files: Mapping[str, bytes]) -> Iterator[Path]:
    for name, held in files.items():
        write_whole(folder / name, held, overwrite=True)
        yield folder / name


def _facts(study: Study, session: dp.session) -> dict[str, str]:
    said = {name.capitalize(): study.said.get(name) for name in ("author", "subset", "person")}
    notes = convergence_notes(session.ledger.register()["mechanism"])
    return {
        **{name: str(own) for name, own in said.items() if own},
        "Guarantee": ". ".join((session.ledger.guarantee.describe(), *notes)),
        "Neighbours": session.ledger.adjacency.describe(),
        "Spent": session.ledger.describe(),
    }


# A study's results on one page, and links to its files.


class Part(NamedTuple):
    """What a page shows under one name, with the files that hold it too."""

    name: str
    about: str  # One line below the heading, empty for none
    html: str
    pictures: tuple[tuple[str, bytes], ...] = ()
    files: tuple[str, ...] = ()


def page(title: str, facts: Mapping[str, str], parts: Sequence[Part]) -> str:
    """Return one document that holds all parts; nothing outside of the folder is linked."""
    links = " · ".join(f'<a href="#{quote(own.name)}">{escaped(own.name)}</a>' for own in parts)
    said = [f"<dt>{escaped(name)}</dt><dd>{escaped(own)}</dd>" for name, own in facts.items()]
    head = [f"<h1>{escaped(title)}</h1>", "<dl>", *said, "</dl>", f"<nav>{links}</nav>"]
    return document(title, "\n".join([*head, *(line for own in parts for line in _lines(own))]))


def _lines(own: Part) -> Iterable[str]:
    yield f'<section id="{quote(own.name)}"><h2>{escaped(own.name)}</h2>'
    if own.about:
        yield f"<p><code>{escaped(own.about)}</code></p>"
    yield own.html
    yield from (picture(text, png) for text, png in own.pictures)
    if own.files:
        named = " · ".join(f'<a href="{quote(file)}">{escaped(file)}</a>' for file in own.files)
        yield f"<p>Files: {named}</p>"
    yield "</section>"
