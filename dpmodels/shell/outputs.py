"""The files that a command writes besides what it prints."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection, Mapping
from glob import glob
from typing import TYPE_CHECKING, Any

import dpmodels as dp
from dpmodels.atomic_files import require_target, write_whole
from dpmodels.errors import ArgumentError, DPModelsError, FrameError

if TYPE_CHECKING:
    from dpmodels.report import Summary


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
    from dpmodels.shell.plain_values import as_csv, as_json

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
    tell(fit.summary())
    write_outputs(options, fit.summary(), fit)
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
