"""The command line: the main job, and the same on anybody's file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import dpmodels as dp
from dpmodels.drafting import EXAMPLE as CODEBOOK_EXAMPLE
from dpmodels.drafting import WHAT, add_codebook, run_codebook
from dpmodels.errors import ArgumentError, DPModelsError
from dpmodels.evaluating import EXAMPLE as EVALUATE_EXAMPLE
from dpmodels.evaluating import WHAT as EVALUATE
from dpmodels.evaluating import add_evaluate, run_evaluate
from dpmodels.outputs import add_outputs, require_outputs, write_outputs
from dpmodels.writing import require_target

if TYPE_CHECKING:
    from dpmodels.models.site_files import Combined
    from dpmodels.sites import LetterProtocol

DESCRIPTION = """\
R's way of working for differential privacy: a formula, one verb, a printed table.

Without a command: a private principal components analysis of the RAND Health
Insurance Experiment (20,190 person-years, 10 variables) that protects persons,
at eps = 1 and delta = 1e-6.
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

LEDGER = "open, verify and print the account of what one table's releases have cost"

LEDGER_EXAMPLE = """\
example:
  python -m dpmodels ledger study.ledger --eps 2 --delta 1e-6     # a new one
  python -m dpmodels pca "~ a + b" data.csv --codebook cb.json --eps 1 --delta 1e-6 \\
      --ledger study.ledger
  python -m dpmodels ledger study.ledger --html register.html     # what was charged
"""

SITES_EXAMPLE = """\
example, with three sites that trust nobody else with their rows:
  python -m dpmodels site-key A --out a.key          # each site its own; a.key.card to all
  python -m dpmodels site "~ age + log(income + 1) + sex" a.csv --out a.json \\
      --site A --session "trial 7" --protocol secure_sum --codebook codebook.json \\
      --eps 1 --delta 1e-6 --ncomp 2 --key a.key --cards a.key.card b.key.card c.key.card
  python -m dpmodels combine a.json b.json c.json --html report.html

Sites B and C write the same but for their own names and files. The protocols full
and dpdispca need no keys: leave --key and --cards out.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.
    """
    words = _parser().parse_args(argv)
    commands = {
        None: _main_job,
        "pca": _pca,
        "codebook": run_codebook,
        "ledger": _ledger,
        "audit": _audit,
        "evaluate": run_evaluate,
        "site-key": _site_key,
        "site": _site,
        "combine": _combine,
    }
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
    add_evaluate(_command(commands, "evaluate", EVALUATE, EVALUATE_EXAMPLE))
    pca = _command(
        commands, "pca", "private principal components of a Parquet or CSV file", EXAMPLE
    )
    _add_rows(pca)
    pca.add_argument("--mechanism", default="auto", help="auto (default) or a name")
    _add_model(pca.add_argument_group("model"))
    add_outputs(pca, "report")
    add_codebook(_command(commands, "codebook", WHAT, CODEBOOK_EXAMPLE))
    _add_ledger(_command(commands, "ledger", LEDGER, LEDGER_EXAMPLE))
    _add_sites(commands)
    return parser


def _command(commands: Any, name: str, what: str, example: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        help=what,
        description=f"{what.capitalize()}.",
        epilog=example,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return made


def _add_rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("formula", help='for example "~ a + log(b + 1)"; "~ ." takes all variables')
    parser.add_argument("data", help="path of a .parquet or .csv file")
    parser.add_argument(
        "--codebook", help="file of public bounds and levels; by default what a .parquet carries"
    )
    budget = parser.add_argument_group("privacy")
    budget.add_argument("--eps", type=float, help="privacy loss, for example 1")
    budget.add_argument("--delta", type=float, default=0.0, help="for example 1e-6; well below 1/n")
    budget.add_argument("--rho", type=float, help="zCDP budget, instead of --eps and --delta")
    budget.add_argument(
        "--adjacency", default="replace", help="replace (default; n is public) or add-remove"
    )
    _add_unit(budget)
    budget.add_argument("--ledger", metavar="FILE", help="charge it; opened by the command ledger")
    parser.add_argument("--subset", help="a condition on the rows that count, such as 'age >= 25'")


def _add_unit(budget: Any) -> None:
    budget.add_argument("--person", metavar="COLUMN", help="protect persons: whose a row is")
    budget.add_argument(
        "--rows", type=_rows, help="how many rows of a person count, or mean for all; any so many"
    )


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="of the ledger; made if it is not there")
    budget = parser.add_argument_group("what a new one holds; of another one it has to be the same")
    budget.add_argument("--eps", type=float, help="privacy loss of all releases together")
    budget.add_argument("--delta", type=float, default=0.0, help="for example 1e-6")
    budget.add_argument("--rho", type=float, help="zCDP budget, instead of --eps and --delta")
    budget.add_argument("--adjacency", help="replace (default; n is public) or add-remove")
    _add_unit(budget)
    budget.add_argument("--pure", type=float, help="eps kept for releases without delta")
    budget.add_argument("--rule", help="gaussian or zcdp; by default the first charge decides")
    parser.add_argument("--export", metavar="FILE", help="all lines with their hashes, as JSON")
    add_outputs(parser, "table")


def _add_model(model: Any) -> None:
    """Add words of the verbs; those that are not given are left to the verb."""
    left = argparse.SUPPRESS
    model.add_argument("--ncomp", type=int, default=left, help="components to keep (default: all)")
    model.add_argument(
        "--no-center",
        dest="center",
        action="store_false",
        default=left,
        help="second moment about zero",
    )
    model.add_argument("--scale", type=_or_none, default=left, help="range (default), sd or none")
    model.add_argument(
        "--row-norm", type=_row_norm, default=left, help="hold scaled rows in a smaller ball"
    )


def _add_sites(commands: Any) -> None:
    key = _command(commands, "site-key", "make a site's key for one joint release", SITES_EXAMPLE)
    key.add_argument("site", help="the site's public name")
    key.add_argument("--out", required=True, metavar="FILE", help="the key; FILE.card beside it")
    site = _command(
        commands, "site", "write a site's part of a joint release, for combine", SITES_EXAMPLE
    )
    _add_rows(site)
    site.add_argument("--out", required=True, metavar="FILE", help="a new file; it holds no rows")
    joint = site.add_argument_group("who releases together; --site, --key and --out are one's own")
    joint.add_argument("--site", required=True, help="this site's public name")
    joint.add_argument("--session", required=True, help="a name of this release, new each time")
    joint.add_argument("--protocol", required=True, help="full, dpdispca, cape or secure_sum")
    joint.add_argument("--key", metavar="FILE", help="of site-key, for cape and secure_sum")
    joint.add_argument("--cards", nargs="+", default=(), metavar="FILE", help="those of all sites")
    for name, (kind, what) in _PROTOCOL_WORDS.items():
        joint.add_argument(f"--{name}", type=kind, default=argparse.SUPPRESS, help=what)
    model = site.add_argument_group("model")
    model.add_argument(
        "--verb",
        default="pca",
        help="pca (default), cov, moments, lm, mean, var, hist, table, summary",
    )
    _add_model(model)
    for name, (read, what) in _MORE_WORDS.items():
        model.add_argument(f"--{name}", type=read, default=argparse.SUPPRESS, help=what)
    combine = _command(
        commands, "combine", "fit what sites have written, at no further cost", SITES_EXAMPLE
    )
    combine.add_argument("files", nargs="+", metavar="FILE", help="of site, one of each site")
    add_outputs(combine, "report")


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
    add_outputs(parser, "table")


def _row_norm(text: str) -> float | str:
    return text if text == "unit" else float(text)


def _breaks(text: str) -> int | list[float]:
    return [float(end) for end in text.split(",")] if "," in text else int(text)


def _rows(text: str) -> int | str:
    return text if text == "mean" else int(text)


def _or_none(text: str) -> str | None:
    return None if text == "none" else text


_MODEL_WORDS = ("ncomp", "center", "scale", "row_norm", "denoise", "weights", "breaks")
_MORE_WORDS: dict[str, tuple[Callable[[str], object], str]] = {
    "denoise": (_or_none, "auto (default), invariant, spiked, psd or none"),
    "weights": (str, "a variable, for lm"),
    "breaks": (_breaks, "for hist, how many bins or their ends, such as 0,20,100"),
}
_PROTOCOL_WORDS: dict[str, tuple[Callable[[str], object], str]] = {
    "colluders": (int, "sites that may collude, for cape and secure_sum (default: 1)"),
    "R": (int, "columns of the root that is sent, for dpdispca (default: --ncomp)"),
}


def _main_job(words: argparse.Namespace) -> int:
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
    print(fit.summary())
    return 0


def _pca(words: argparse.Namespace) -> int:
    require_outputs(words, words.data, *filter(None, [words.codebook, words.ledger]))
    fit = dp.dp_pca(
        words.formula,
        words.data,
        codebook=words.codebook,
        mechanism=words.mechanism,
        ledger=_opened(words),
        subset=words.subset,
        **_privacy(words),
        **_given(words, _MODEL_WORDS),
    )
    return _show(fit, words)


def _opened(words: argparse.Namespace) -> dp.Ledger | None:
    return None if words.ledger is None else dp.Ledger.open(words.ledger)


def _ledger(words: argparse.Namespace) -> int:
    """Open a ledger, verify it and print its register."""
    require_outputs(words, words.file)
    if words.export is not None:
        require_target(words.export, overwrite=words.force, never=[words.file])
    ledger = dp.Ledger.open(words.file, **_privacy(words), pure=words.pure, rule=words.rule)
    made = dp.ledger_report(ledger)
    print(made)
    write_outputs(words, made)
    if words.export is not None:
        ledger.export(words.export, overwrite=words.force)
    return 0


def _given(words: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(words, name) for name in names if hasattr(words, name)}


def _privacy(words: argparse.Namespace) -> dict[str, Any]:
    return {
        "eps": words.eps,
        "delta": words.delta,
        "budget": None if words.rho is None else dp.ZCDP(words.rho),
        "adjacency": words.adjacency,
        "person": words.person,
        "rows": words.rows,
    }


def _show(fit: Combined, words: argparse.Namespace) -> int:
    print(fit.summary())
    write_outputs(words, fit.summary(), fit)
    return 0


def _site_key(words: argparse.Namespace) -> int:
    card = dp.site_key(words.site, words.out)
    print(f"{words.out}: the key of site {words.site!r} for one release; show it to nobody")
    print(f"{card}: its public card; send it to all other sites")
    return 0


def _site(words: argparse.Namespace) -> int:
    from dpmodels.declared import declared

    written = dp.site_release(
        words.formula,
        words.data,
        words.out,
        site=words.site,
        session=words.session,
        protocol=_protocol(words),
        codebook=declared(words.codebook, words.data, None, words.formula),
        verb=words.verb,
        key=words.key,
        cards=words.cards,
        ledger=_opened(words),
        subset=words.subset,
        **_privacy(words),
        **_given(words, _MODEL_WORDS),
    )
    print(
        f"{written}: the part of site {words.site!r} of {words.session!r}, protocol "
        f"{words.protocol}; send it to whoever combines"
    )
    return 0


def _protocol(words: argparse.Namespace) -> str | LetterProtocol:
    """Return a protocol with the words given for it, and an unknown name as it is."""
    from dpmodels.sites import SENT

    given, name = _given(words, _PROTOCOL_WORDS), words.protocol
    if name not in SENT:
        return str(name)
    strange = [word for word in given if word not in SENT[name].__dataclass_fields__]
    if strange:
        raise ArgumentError(f"--{strange[0]} is no word of protocol {name!r}; leave it out")
    made: LetterProtocol = SENT[name](**given)
    return made


def _combine(words: argparse.Namespace) -> int:
    require_outputs(words, *words.files)
    return _show(dp.combine(words.files), words)


def _audit(words: argparse.Namespace) -> int:
    """Audit the package or the exhibits; status 1 if one is not as it should be."""
    from dpmodels.audit.run_all import run_all, run_exhibits

    require_outputs(words)
    made = run_exhibits() if words.exhibits else run_all(full=words.all)
    print(made.summary())
    write_outputs(words, made.summary())
    return 0 if made.expected else 1


if __name__ == "__main__":
    sys.exit(main())
