"""The files that the command line writes besides what it prints."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Mapping
from glob import glob
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dpmodels.errors import ArgumentError, DPModelsError, FrameError
from dpmodels.writing import require_target, write_whole

if TYPE_CHECKING:
    from dpmodels.report import Summary

TABLES: Mapping[str, str] = {
    "text": "as plain text",
    "html": "as a web page, with pictures where matplotlib is installed",
    "latex": "as LaTeX tables",
    "markdown": "as Markdown",
}
_PICTURES = {
    "plot_scree": "Variances of the components with noise intervals",
    "plot_loadings": "Loadings of the variables on the components",
    "plot": "Estimates",
}


def add_outputs(parser: argparse.ArgumentParser, printed: str) -> None:
    """Add the options that name files.

    `printed` is what the command prints; a result is behind a "report".
    """
    output = parser.add_argument_group(f"output, besides the printed {printed}")
    for name, how in TABLES.items():
        output.add_argument(f"--{name}", metavar="FILE", help=f"the {printed} {how}")
    if printed == "report":
        output.add_argument("--save", metavar="FILE", help="the result as netCDF, for dp.load")
    output.add_argument(
        "--force", action="store_true", help="write over these files, where they are there already"
    )


def require_outputs(words: argparse.Namespace, *read: str) -> None:
    """Refuse files that cannot be written, before anything is read or charged.

    Nothing is written over what the command reads, paths or patterns, whatever the user wrote.
    """
    never = [path for given in read for path in (given, *glob(given, recursive=True))]
    for name, target in _targets(words).items():
        try:
            require_target(target, overwrite=words.force, never=never)
        except (ArgumentError, FrameError) as error:
            more = ", or write --force" if "is there already; give" in str(error) else ""
            raise ArgumentError(f"--{name} {error}{more}") from None
        never.append(target)


def write_outputs(words: argparse.Namespace, summary: Summary, fit: Any = None) -> None:
    """Write all files that can be written; the `FrameError` names those that cannot."""
    makers: Mapping[str, Callable[[], bytes]] = {
        "text": lambda: (summary.as_text() + "\n").encode(),
        "html": lambda: summary.as_page(_pictures(fit)).encode(),
        "latex": lambda: summary.as_latex().encode(),
        "markdown": lambda: summary.as_markdown().encode(),
    }
    failed = []
    for name, target in _targets(words).items():
        try:
            if name == "save":
                fit.save(target, overwrite=words.force)
            else:
                write_whole(target, makers[name](), overwrite=words.force)
        except DPModelsError as error:
            failed.append(f"--{name} {error}")
    if failed:
        raise FrameError("; ".join(failed) + ". What was released is printed above")


def _targets(words: argparse.Namespace) -> dict[str, str]:
    given = {name: getattr(words, name, None) for name in (*TABLES, "save")}
    return {name: target for name, target in given.items() if target is not None}


def _pictures(fit: Any) -> tuple[tuple[str, bytes], ...]:
    """Draw the pictures of a web page, none where matplotlib is not installed."""
    if fit is None or find_spec("matplotlib") is None:
        return ()
    from matplotlib.figure import Figure

    pictures = []
    for name, text in _PICTURES.items():
        draw = getattr(fit, name, None)
        if draw is None:
            continue
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        try:
            draw(ax=figure.add_subplot())
        except ArgumentError:  # a model of the constant alone has nothing to draw
            continue
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        pictures.append((text, buffer.getvalue()))
    return tuple(pictures)
