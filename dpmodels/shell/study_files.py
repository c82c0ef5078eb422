"""The files of a study: tables, pictures and data of each release, and one page of all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

import dpmodels as dp
from dpmodels.atomic_files import write_whole
from dpmodels.disclosures.document import guaranteed, neighbours, pictures
from dpmodels.privacy.register import convergence_notes
from dpmodels.report import Summary
from dpmodels.report.html import as_html, document, escaped, picture
from dpmodels.report.notes import separated, shortened
from dpmodels.shell.outputs import content
from dpmodels.shell.study import Study

if TYPE_CHECKING:
    from dpmodels.results.base import Result

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
    parts += [Part("guarantee", "", _guarantee(session)), Part("ledger", "", register)]
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


def _guarantee(session: dp.session) -> str:
    """Return the guarantee as items of a list."""
    ledger = session.ledger
    sentences = (
        *guaranteed(ledger.guarantee),
        neighbours(ledger.adjacency),
        *convergence_notes(ledger.register()["mechanism"]),
    )
    return f"<ul>{''.join(f'<li>{escaped(sentence)}</li>' for sentence in sentences)}</ul>"


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
