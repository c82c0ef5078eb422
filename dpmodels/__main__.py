"""The command line: the main job, and the same on anybody's file."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpmodels as dp
from dpmodels.errors import ArgumentError, DPModelsError

if TYPE_CHECKING:
    from dpmodels.results import PCAResult, SubspaceResult
    from dpmodels.results.summary import Summary

    Fit = PCAResult | SubspaceResult

Pictures = tuple[tuple[str, bytes], ...]

DESCRIPTION = """\
R's way of working for differential privacy: a formula, one verb, a printed table.

Without a command: a private principal components analysis of the RAND Health
Insurance Experiment (20,190 people, 10 variables), at eps = 1 and delta = 1e-6.
"""

AUDIT = "attack every mechanism and every verb, and bound from below the privacy that is lost"

EXAMPLE = """\
example:
  python -m dpmodels pca "~ age + log(income + 1) + sex" people.parquet \\
      --codebook codebook.json --eps 1 --delta 1e-6 --html report.html

The codebook is a JSON file of public facts, never taken from the data:
  {"age": {"range": [0, 120]}, "income": {"range": [0, 250000], "unit": "dollars"},
   "sex": {"levels": ["F", "M"]}}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.
    """
    words = _parser().parse_args(argv)
    commands = {None: _main_job, "pca": _pca, "audit": _audit}
    try:
        return commands[words.command](words)
    except DPModelsError as error:
        print(f"dpmodels: {type(error).__name__}: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dpmodels",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    _add_audit(commands.add_parser("audit", help=AUDIT, description=AUDIT))
    pca = commands.add_parser(
        "pca",
        help="principal components of a Parquet or CSV file",
        description="Private principal components of a Parquet or CSV file.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    pca.add_argument("formula", help='for example "~ a + log(b + 1)"; "~ ." takes all variables')
    pca.add_argument("data", help="path of a .parquet or .csv file")
    pca.add_argument("--codebook", required=True, help="JSON file of public bounds and levels")
    budget = pca.add_argument_group("privacy")
    budget.add_argument("--eps", type=float, help="privacy loss, for example 1")
    budget.add_argument("--delta", type=float, default=0.0, help="for example 1e-6; well below 1/n")
    budget.add_argument("--rho", type=float, help="zCDP budget, instead of --eps and --delta")
    budget.add_argument(
        "--adjacency", default="replace", help="replace (default; n is public) or add-remove"
    )
    budget.add_argument("--mechanism", default="auto", help="auto (default) or a name")
    model = pca.add_argument_group("model")
    model.add_argument("--ncomp", type=int, help="components to keep (default: all)")
    model.add_argument("--no-center", action="store_true", help="second moment about zero")
    model.add_argument("--scale", default="range", help="range (default), sd or none")
    model.add_argument("--row-norm", type=_row_norm, help="hold scaled rows in a smaller ball")
    output = pca.add_argument_group("output, besides the printed report")
    for name, what in _FORMATS.items():
        output.add_argument(f"--{name}", metavar="FILE", help=what)
    return parser


def _add_audit(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--all", action="store_true", help="as many releases as bounds need, minutes; else seconds"
    )
    which.add_argument(
        "--exhibits",
        action="store_true",
        help="recipes with known faults, which have to be flagged, each with its mended twin",
    )
    output = parser.add_argument_group("output, besides the printed table")
    for name in _TABLES:
        output.add_argument(f"--{name}", metavar="FILE", help=_FORMATS[name])


def _row_norm(text: str) -> float | str:
    return text if text == "unit" else float(text)


_TABLES = ("text", "html", "latex", "markdown")
_FORMATS = {
    "text": "the report as plain text",
    "html": "the report as a web page, with pictures where matplotlib is installed",
    "latex": "the report as LaTeX tables",
    "markdown": "the report as Markdown",
    "save": "the result as netCDF, for dp.load",
}


def _main_job(words: argparse.Namespace) -> int:
    from dpmodels.datasets import load_randhie, randhie_codebook

    fit = dp.dp_pca(
        "~ mdvis + lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp",
        load_randhie(),
        codebook=randhie_codebook(),
        eps=1.0,
        delta=1e-6,
        ncomp=6,
    )
    print(fit.summary())
    return 0


def _pca(words: argparse.Namespace) -> int:
    _check_targets(words)
    fit = dp.dp_pca(
        words.formula,
        words.data,
        codebook=dp.Codebook.load(words.codebook),
        eps=words.eps,
        delta=words.delta,
        budget=None if words.rho is None else dp.ZCDP(words.rho),
        ncomp=words.ncomp,
        center=not words.no_center,
        scale=None if words.scale == "none" else words.scale,
        row_norm=words.row_norm,
        mechanism=words.mechanism,
        adjacency=words.adjacency,
    )
    print(fit.summary())
    _write(fit.summary(), words, lambda: _pictures(fit))
    if words.save is not None:
        fit.save(words.save)
    return 0


def _audit(words: argparse.Namespace) -> int:
    """Audit the package or the exhibits; status 1 if one is not as it should be."""
    from dpmodels.audit.rollcall import call_the_exhibits, call_the_roll

    _check_targets(words)
    made = call_the_exhibits() if words.exhibits else call_the_roll(full=words.all)
    print(made.summary())
    _write(made.summary(), words, tuple)
    return 0 if made.expected else 1


def _check_targets(words: argparse.Namespace) -> None:
    """Refuse an output folder that is not there before the budget is spent."""
    for name in _FORMATS:
        target = getattr(words, name, None)
        if target is not None and not Path(target).resolve().parent.is_dir():
            raise ArgumentError(f"--{name} {target!r}: its folder does not exist; make it first")


def _write(summary: Summary, words: argparse.Namespace, draw: Callable[[], Pictures]) -> None:
    makers = {
        "text": lambda: summary.as_text() + "\n",
        "html": lambda: summary.as_page(draw()),
        "latex": summary.as_latex,
        "markdown": summary.as_markdown,
    }
    for name, make in makers.items():
        target = getattr(words, name)
        if target is not None:
            Path(target).write_text(make(), encoding="utf-8")


def _pictures(fit: Fit) -> Pictures:
    """Draw the pictures of a web page, none where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        return ()
    from matplotlib.figure import Figure

    from dpmodels.results import PCAResult

    drawn: list[tuple[str, Any]] = [
        ("Loadings of the variables on the components", fit.plot_loadings)
    ]
    if isinstance(fit, PCAResult):
        drawn.insert(0, ("Variances of the components with noise intervals", fit.plot_scree))
    pictures = []
    for text, draw in drawn:
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        draw(ax=figure.add_subplot())
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        pictures.append((text, buffer.getvalue()))
    return tuple(pictures)


if __name__ == "__main__":
    sys.exit(main())
