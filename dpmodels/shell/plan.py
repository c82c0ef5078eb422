"""Commands before anything is charged: the price of a study, and a comparison of algorithms."""

from __future__ import annotations

import argparse
import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

import dpmodels as dp
from dpmodels.atomic_files import require_target
from dpmodels.errors import ArgumentError, DPModelsError, FrameError, NotAvailable
from dpmodels.external_files import read_bytes
from dpmodels.shell.command_options import Command, Parser
from dpmodels.shell.outputs import add_outputs, require_outputs, tell, write_outputs

if TYPE_CHECKING:
    from dpmodels.planning.analysis import AnalysisPlan
    from dpmodels.results.plan import PlanResult
    from dpmodels.sessions.call import Call


def _add(parser: Parser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("study", metavar="FILE", help="the study, as TOML")
    guess = parser.add_argument_group("expected errors, from simulated rows")
    guess.add_argument(
        "--n",
        type=int,
        help="number of rows: errors are simulated, the budget is divided; default: [study] n",
    )
    guess.add_argument("--shape", default="normal", help="normal (default), skewed, ...")
    add_outputs(parser, "table")


def _run(options: argparse.Namespace) -> int:
    from dpmodels.sessions.shares import whole_of
    from dpmodels.shell.study import read_study
    from dpmodels.shell.study_run import finished_releases, in_order, price_releases

    require_outputs(options, options.study)
    study = read_study(options.study)
    session = study.preview_session()
    n_rows = study.settings.get("n") if options.n is None else options.n
    fits = finished_releases(study, session, ())[1]
    todo = in_order(study, fits)
    priced = price_releases(session, todo, n_rows)
    tell(priced.summary())
    report: PlanResult | AnalysisPlan = priced
    if n_rows is not None:
        names = ("adjacency", "person", "rows", "subset")
        stated = {
            name: {"budget": fit.release.guarantee, "mechanism": fit.release.info.name}
            for name, fit in fits.items()
        }
        for release, planned in zip(todo, priced.calls, strict=True):
            budget, mechanism = planned.price.guarantee, planned.mechanism
            stated[release.name] = {"budget": budget, "mechanism": mechanism}
        report = dp.plan(
            {
                release.name: _with_amount(release.call, stated[release.name])
                for release in study.releases
            },
            codebook=session.codebook,
            n=n_rows,
            shape=options.shape,
            budget=whole_of(session.ledger),
            **{name: study.settings[name] for name in names if name in study.settings},
        )
        tell(report.summary())
    write_outputs(options, report.summary(), report)
    return 0 if priced.fits else 1


def _with_amount(call: Call, stated: Mapping[str, object]) -> Call:
    """Return a call whose share, if it has one, is replaced by the amount that it comes to.

    And by the mechanism of that amount, which may be another in a plan of the call alone.
    """
    if call.options.get("share") is None and not isinstance(call.options.get("eps"), str):
        return call
    amounts = ("eps", "share", "delta")
    options = {key: value for key, value in call.options.items() if key not in amounts}
    return replace(call, options={**options, **stated})


PLAN: Final = Command("Price a study and simulate its errors; nothing is spent", _add, _run)


# The command that runs a study from one file.

EXAMPLE: Final = """\
example, study.toml:
  [study]
  title = "Wages"
  data = "people.csv"            # relative to this file's folder
  codebook = "cb.json"
  eps = 2.0                      # of all releases together; or rho
  delta = 1e-6
  out = "report"                 # a folder; its ledger is study.ledger, or ledger = "..."

  [[release]]
  name = "wages"
  verb = "mean"
  formula = "wage ~ sex"
  eps = 0.5                      # or share = "1/4" of the rest

  [[release]]                    # releases without a budget share the rest
  name = "model"
  verb = "lm"
  formula = "wage ~ age + sex"
  vcov = "HC"

  [[table]]                      # results side by side, with options of dp.etable
  name = "models"
  of = ["model"]

  [disclosure]                   # options of dp.disclosure
  purpose = "Annual report"

  dpmodels plan study.toml       # what it would cost; nothing is read or charged
  dpmodels run study.toml

Other keys of [study]: author, adjacency, person, rows, subset, csv; n, about how many rows there
are, for a column of how much each release is expected to identify. Everything is checked before
the first charge. A second run repeats no release.
"""


def _run_add(parser: Parser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("study", metavar="FILE", help="the study, as TOML")
    parser.add_argument(
        "--again",
        nargs="+",
        default=(),
        metavar="NAME",
        help="releases to pay for again; they replace the earlier ones",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="do not print the plan before the first charge"
    )


def _run_run(options: argparse.Namespace) -> int:
    from dpmodels.shell.study_run import run_study

    return run_study(options.study, options.again, quiet=options.quiet)


RUN: Final = Command("Run a study from one file: tables, pictures, one ledger", _run_add, _run_run)


_EXAMPLE: Final = """\
example:
  dpmodels evaluate study.html
  dpmodels evaluate study.html --tables public.npz --algorithms geometric greedyh mwem \\
      --scale 1e3 1e5 --domain 256 4096 --eps 0.1 --error ranges --repeats 20

The page is one file, with pictures to choose cells in, and needs no network. Tables are public
histograms, written by numpy.savez("public.npz", name=counts); by default simulated ones. Algorithms
are mechanisms of dp_hist and, in a copy of the source tree, the published ones of
benchmarks/algorithms.py, such as greedyh and mwem.
"""

_CELLS: Final = 1024
_MOST_BYTES: Final = 2**30


def _add_evaluate(parser: Parser) -> None:
    parser.epilog = _EXAMPLE
    unset = argparse.SUPPRESS
    parser.add_argument("page", metavar="FILE", help="the page, as .html")
    parser.add_argument("--tables", metavar="FILE", help="public histograms, as .npz")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="by default all that fit")
    parser.add_argument("--scale", nargs="+", type=float, default=unset, help="numbers of rows")
    parser.add_argument("--domain", nargs="+", type=int, default=unset, help="numbers of cells")
    parser.add_argument(
        "--eps", nargs="+", type=float, default=unset, help="budgets (default: 0.1)"
    )
    parser.add_argument("--delta", type=float, default=0.0, help="only for mechanisms of dp_hist")
    parser.add_argument("--error", default=unset, help="prefix (default), ranges, random, identity")
    parser.add_argument("--repeats", type=int, default=unset, help="in each cell (default: 20)")
    parser.add_argument("--seed", type=int, default=unset, help="of the simulation (default: 0)")
    add_outputs(parser, "table")


def _run_evaluate(options: argparse.Namespace) -> int:
    from dpmodels.evaluation.shapes import standard
    from dpmodels.evaluation.verb import evaluate

    read = [] if options.tables is None else [options.tables]
    require_outputs(options, *read)
    require_target(options.page, overwrite=options.force, never=read)
    tables = standard(_CELLS) if options.tables is None else _public_tables(options.tables)
    axes = max((table.ndim for table in tables.values()), default=1)
    names = ("scale", "domain", "eps", "error", "repeats", "seed")
    kwargs = {name: getattr(options, name) for name in names if hasattr(options, name)}
    comparison = evaluate(_recipes(options.algorithms, axes, options.delta), tables, **kwargs)
    tell(comparison.summary())
    comparison.page(options.page, overwrite=options.force)
    write_outputs(options, comparison.summary())
    return 0


def _recipes(names: list[str] | None, axes: int, delta: float) -> dict[str, object]:
    """Return mechanisms of dp_hist and published algorithms by name, for a number of axes."""
    from dpmodels.evaluation.histograms import variables
    from dpmodels.mechanisms import COUNTS, ORDERED
    from dpmodels.models.table import dp_hist

    published, absent = _published(axes)
    verb = partial(dp_hist, f"~ {' + '.join(variables(axes))}", delta=delta)
    mechanisms = {name: partial(verb, mechanism=name) for name in (*COUNTS, *ORDERED)}
    if names is None:
        return {
            name: recipe for name, recipe in mechanisms.items() if _takes(recipe, axes)
        } | published
    algorithms = mechanisms | published
    for name in names:
        if name not in algorithms:
            raise ArgumentError(
                f"--algorithms {name} is not known for tables of {axes} axes: write some of "
                f"{', '.join(algorithms)}{absent}"
            )
    return {name: algorithms[name] for name in names}


def _published(axes: int) -> tuple[dict[str, object], str]:
    from dpmodels.evaluation.recipe import published_algorithms

    try:
        algorithms = published_algorithms()
    except NotAvailable as error:
        return {}, f"; {error}"
    return dict(algorithms.LINE if axes == 1 else algorithms.PLANE), ""


def _takes(recipe: Callable[..., object], axes: int) -> bool:
    """Whether a mechanism of dp_hist accepts such tables and budgets, tried on one row."""
    from dpmodels.codebook import Codebook
    from dpmodels.evaluation.histograms import variables
    from dpmodels.noise import simulation
    from dpmodels.variables import Integer

    names = variables(axes)
    book = Codebook({name: Integer(0, 1) for name in names})
    breaks = 2 if axes == 1 else (2,) * axes
    try:
        with simulation(seed=0):
            recipe({name: [0] for name in names}, codebook=book, eps=1.0, breaks=breaks)
    except DPModelsError:
        return False
    return True


def _public_tables(path: str) -> Mapping[str, NDArray[np.generic]]:
    import numpy as np

    try:
        with np.load(io.BytesIO(read_bytes(path, _MOST_BYTES)), allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in archive.files}
    except (FrameError, OSError, ValueError, AttributeError, TypeError, zipfile.BadZipFile):
        raise FrameError(
            f"--tables {path!r} is not a file of numpy arrays: write public histograms with "
            "numpy.savez(path, name=counts)"
        ) from None


EVALUATE: Final = Command(
    "Compare algorithms for counts on public or simulated tables, before any budget is spent",
    _add_evaluate,
    _run_evaluate,
)
