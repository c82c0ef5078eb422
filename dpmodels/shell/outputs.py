"""The files that a command writes besides what it prints; results as strict JSON, and CSV."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Collection, Mapping
from glob import glob
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final

import dpmodels as dp
from dpmodels.atomic_files import require_target, write_whole
from dpmodels.errors import ArgumentError, DPModelsError, FrameError

if TYPE_CHECKING:
    import pandas as pd

    from dpmodels.report import Summary
    from dpmodels.results.base import Result

TABLES: Mapping[str, str] = {
    "text": "as plain text",
    "html": "as a web page, with pictures where matplotlib is installed",
    "latex": "as LaTeX tables",
    "markdown": "as Markdown",
}
DATA: Mapping[str, str] = {
    "json": "the numbers, what they cost and the digest of the release, as JSON",
    "csv": "the tidy table, as CSV",
    "save": "the result as netCDF, for dp.load",
}
FOUND: Mapping[str, str] = {
    "found": "the codebook with the released bounds or levels, for --codebook"
}


def add_outputs(
    parser: argparse.ArgumentParser, printed: str, formats: Collection[str] = tuple(TABLES)
) -> None:
    """Add the options that name files, in these formats; `printed` is what the command prints."""
    output = parser.add_argument_group(f"output, besides the printed {printed}")
    tables = {name: f"the {printed} {how}" for name, how in TABLES.items()}
    for name, how in {**tables, **DATA, **FOUND}.items():
        if name in formats:
            output.add_argument(f"--{name}", metavar="FILE", help=how)
    output.add_argument("--force", action="store_true", help="overwrite these files if they exist")
    if printed == "report" and "save" in formats:
        notes = "the most important notes, or all"
        output.add_argument("--notes", choices=("short", "all"), default="short", help=notes)


def require_outputs(options: argparse.Namespace, *read: str) -> None:
    """Refuse files that cannot be written, before anything is read or charged.

    Files that the command reads, by paths or patterns, are never overwritten.
    """
    never = [path for pattern in read for path in (pattern, *glob(pattern, recursive=True))]
    for name, target in _targets(options).items():
        try:
            require_target(target, overwrite=options.force, never=never)
        except (ArgumentError, FrameError) as error:
            hint = ", or write --force" if "already exists; give" in str(error) else ""
            raise ArgumentError(f"--{name} {error}{hint}") from None
        never.append(target)


def write_outputs(options: argparse.Namespace, summary: Summary, fit: Any = None) -> None:
    """Write all files that can be written; the `FrameError` names those that cannot."""
    failed = []
    for name, target in _targets(options).items():
        try:
            if name == "save":
                fit.save(target, overwrite=options.force)
            elif name in FOUND:
                fit.codebook.save(target, overwrite=options.force)
            else:
                write_whole(target, content(name, summary, fit), overwrite=options.force)
        except DPModelsError as error:
            failed.append(f"--{name} {error}")
    if failed:
        raise FrameError("; ".join(failed) + ". The release is printed above")


def content(name: str, summary: Summary, fit: Any = None) -> bytes:
    """Return what a file holds, by the name of its option."""
    from dpmodels.disclosures.document import pictures

    makers: Mapping[str, Callable[[], str]] = {
        "text": lambda: summary.as_text() + "\n",
        # A report for disclosure is a page by itself.
        "html": lambda: getattr(summary, "as_page", lambda _: summary.as_html())(pictures(fit)),
        "latex": lambda: summary.as_latex(),
        "markdown": lambda: summary.as_markdown(),
        "json": lambda: as_json(fit),
        "csv": lambda: as_csv(fit),
    }
    return makers[name]().encode()


def show(fit: Any, options: argparse.Namespace) -> int:
    """Print a result's report and write its files."""
    summary = fit.summary(notes=options.notes)
    tell(summary)
    write_outputs(options, summary, fit)
    return 0


def tell(text: object) -> None:
    """Print; if that fails, the release can still be written to files."""
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"dpmodels: nothing was printed ({error.strerror})", file=sys.stderr)


def _targets(options: argparse.Namespace) -> dict[str, str]:
    targets = {name: getattr(options, name, None) for name in (*TABLES, *DATA, *FOUND)}
    return {name: target for name, target in targets.items() if target is not None}


# The command line without a command prints a private analysis of persons.


def main_job() -> int:
    """Print private principal components of the RAND Health Insurance Experiment."""
    from dpmodels.datasets import MOST_YEARS, load_randhie, randhie_codebook

    fit = dp.dp_pca(
        "~ mdvis + lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp",
        load_randhie(),
        codebook=randhie_codebook(),
        eps=1.0,
        delta=1e-6,
        rows=MOST_YEARS,
        ncomp=6,
    )
    tell(fit.summary())
    return 0


# A result as plain values for other programs: strict JSON, and CSV.

# A spreadsheet reads cells that begin with these, even after white space, as formulas.
_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def as_json(fit: Result) -> str:
    """Return numbers, guarantee and digest as JSON, in which nan and infinity are null."""
    from dpmodels.digest import release_digest
    from dpmodels.results.call import guarantee_words, neighbours_text

    release = fit.release
    values = {
        "result": type(fit).__name__,
        "formula": fit.call.formula,
        "guarantee": guarantee_words(release),
        "neighbours": neighbours_text(release),
        "simulated": fit.simulated,
        "digest": release_digest(release),
        "glance": _records(fit.glance())[0],
        "tidy": _records(fit.tidy()),
    }
    return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(fit: Result) -> str:
    """Return the tidy table as CSV; an apostrophe keeps text from being run by a spreadsheet."""
    text: str = fit.tidy().map(_inert).to_csv(index=False)
    return text


def _inert(cell: object) -> object:
    risky = isinstance(cell, str) and (
        cell.lstrip().startswith(_FORMULA) or cell.startswith(("\t", "\r", "\n"))
    )
    return f"'{cell}" if risky else cell


def _records(frame: pd.DataFrame) -> list[dict[str, object]]:
    return [
        {str(name): _value(value) for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _value(value: object) -> object:
    import pandas as pd

    if value is pd.NA:
        return None
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Real):
        number = int(value) if isinstance(value, Integral) else float(value)
        return number if math.isfinite(number) else None
    if hasattr(value, "item"):  # numpy's truth values
        return value.item()
    return str(value)
