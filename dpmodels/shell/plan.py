"""The command that prices a study before anything of it is charged."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

import dpmodels as dp
from dpmodels.shell.command_options import Command, Parser
from dpmodels.shell.outputs import add_outputs, require_outputs, tell, write_outputs

if TYPE_CHECKING:
    from dpmodels.planning.analysis import AnalysisPlan
    from dpmodels.shell.study import Study


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
    """Print prices and simulated errors; status 1 if the budget does not pay for all."""
    from dpmodels.shell.study import read_study
    from dpmodels.shell.study_run import finished_releases, in_order, price_releases

    require_outputs(options, options.study)
    study = read_study(options.study)
    session = study.preview_session()
    n_rows = study.settings.get("n") if options.n is None else options.n
    todo = in_order(study, finished_releases(study, session, ())[1])
    priced = price_releases(session, todo, n_rows)
    tell(priced.summary())
    report = priced if n_rows is None else _simulated_plan(study, session, n_rows, options.shape)
    if report is not priced:
        tell(report.summary())
    write_outputs(options, report.summary(), report)
    return 0 if priced.fits else 1


def _simulated_plan(study: Study, session: dp.session, n_rows: int, shape: str) -> AnalysisPlan:
    from dpmodels.sessions.shares import whole_of

    setting_names = ("adjacency", "person", "rows", "subset")
    return dp.plan(
        {release.name: release.call for release in study.releases},
        codebook=session.codebook,
        n=n_rows,
        shape=shape,
        budget=whole_of(session.ledger),
        **{name: study.settings[name] for name in setting_names if name in study.settings},
    )


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
