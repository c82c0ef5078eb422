"""The command that compares algorithms on public tables, and writes the study as one page."""

from __future__ import annotations

import argparse
import io
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.atomic_files import require_target
from dpmodels.errors import ArgumentError, DPModelsError, FrameError, NotAvailable
from dpmodels.external_files import read_bytes
from dpmodels.shell.command_options import Command, Parser
from dpmodels.shell.outputs import add_outputs, require_outputs, tell, write_outputs

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


def _add(parser: Parser) -> None:
    """Add the options of the command; the verb has their defaults."""
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


def _run(options: argparse.Namespace) -> int:
    """Compare, print the table, write the page and return the exit status."""
    from dpmodels.evaluation.shapes import standard
    from dpmodels.evaluation.verb import evaluate

    read = [] if options.tables is None else [options.tables]
    require_outputs(options, *read)
    require_target(options.page, overwrite=options.force, never=read)
    tables = standard(_CELLS) if options.tables is None else _tables(options.tables)
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
    from dpmodels.models.hist import dp_hist

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
    """Return published algorithms for a number of axes, or why they are missing."""
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


def _tables(path: str) -> Mapping[str, NDArray[np.generic]]:
    """Read public histograms from a file of numpy arrays."""
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
    _add,
    _run,
)
