"""Commands for sites that are different organisations: keys, messages, and their release."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterator
from os.path import isdir
from typing import TYPE_CHECKING, Final

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.shell.command_options import (
    Command,
    Parser,
    add_option,
    add_rows,
    function_arguments,
    require_budget,
    table_arguments,
)
from dpmodels.shell.outputs import DATA, TABLES, add_outputs, require_outputs, show, tell
from dpmodels.typing import Plain
from dpmodels.verbs import ParameterDoc, parameter_docs, signature

if TYPE_CHECKING:
    from dpmodels.sites import MessageProtocol

_EXAMPLE: Final = """\
example, with three sites that trust nobody else with their rows:
  dpmodels ledger a.ledger --eps 2 --delta 1e-6   # each site its own, once
  dpmodels site-key A --out a.key                 # each site its own; a.key.card to all
  dpmodels site "~ age + log(income + 1) + sex" a.csv --out a.json \\
      --site A --session "trial 7" --protocol secure_sum --codebook codebook.json \\
      --eps 1 --delta 1e-6 --ncomp 2 --key a.key --cards a.key.card b.key.card c.key.card \\
      --ledger a.ledger
  dpmodels combine a.json b.json c.json --html report.html

Sites B and C write the same with their own names and files. With a folder that all share
in place of the files, --out study and combine study, they exchange rounds: each repeats
its command after each answer, or adds --wait 3600. The protocols full
and dpdispca need no keys: leave --key and --cards out. The ledger records that the
key was used; with full and dpdispca it may be left out.
"""
_PROTOCOL_OPTIONS: Final[dict[str, tuple[Callable[[str], object], str]]] = {
    "colluders": (int, "sites that may collude, for cape and secure_sum (default: 1)"),
    "R": (int, "columns of the root that is sent, for dpdispca (default: --ncomp)"),
}


def _add_key(parser: Parser) -> None:
    parser.epilog = _EXAMPLE
    parser.add_argument("site", help="the site's public name")
    parser.add_argument("--out", required=True, metavar="FILE", help="the key; FILE.card beside it")


def _run_key(options: argparse.Namespace) -> int:
    card = dp.site_key(options.site, options.out)
    tell(f"{options.out}: the key of site {options.site!r} for one release; keep it secret")
    tell(f"{card}: its public card; send it to all other sites")
    return 0


def _add_site(parser: Parser) -> None:
    from dpmodels.models.site_files import sent_verbs

    parser.epilog = _EXAMPLE
    parser.usage = f"{parser.prog} FORMULA FILE [options]"
    add_rows(parser, dp.site_release)
    out = "a new file; it holds no rows; or the folder of an exchange of rounds"
    parser.add_argument("--out", required=True, metavar="FILE", help=out)
    joint = parser.add_argument_group(
        "the joint release; --site, --key and --out differ between sites"
    )
    joint.add_argument("--site", required=True, help="this site's public name")
    joint.add_argument("--session", required=True, help="a name of this release, new each time")
    joint.add_argument("--protocol", required=True, help="full, dpdispca, cape or secure_sum")
    joint.add_argument("--key", metavar="FILE", help="from site-key, for cape and secure_sum")
    joint.add_argument("--cards", nargs="+", default=(), metavar="FILE", help="cards of all sites")
    _add_wait(joint)
    for name, (kind, what) in _PROTOCOL_OPTIONS.items():
        joint.add_argument(f"--{name}", type=kind, default=argparse.SUPPRESS, help=what)
    model = parser.add_argument_group("model")
    model.add_argument(
        "--verb", default="pca", help=f"pca (default), {', '.join(list(sent_verbs())[1:])}"
    )
    for word, text in _verbs_options():
        add_option(model, word, text)


def _add_wait(parser: argparse._ActionsContainer) -> None:
    text = "of an exchange: how long to wait for other parties (default: 0)"
    parser.add_argument("--wait", type=float, default=0.0, metavar="SECONDS", help=text)


def _verbs_options() -> Iterator[tuple[inspect.Parameter, ParameterDoc]]:
    """Yield the parameters of all verbs for sites, each once, with its documentation."""
    from dpmodels.models.site_files import sent_verbs

    names = set()
    for verb in sent_verbs().values():
        for word, parameter in signature(verb.function).items():
            if word in verb.options and word not in names:
                names.add(word)
                yield parameter, parameter_docs(inspect.getdoc(verb.function) or "")[word]


def _run_site(options: argparse.Namespace) -> int:
    from dpmodels.resolve_codebook import codebook_of_call

    require_budget(options)
    arguments: dict[str, Plain] = {**table_arguments(options), **function_arguments(options)}
    arguments["codebook"] = codebook_of_call(options.codebook, options.data, None, options.formula)
    path = dp.site_release(
        options.formula,
        options.data,
        options.out,
        site=options.site,
        session=options.session,
        protocol=_protocol(options),
        verb=options.verb,
        key=options.key,
        cards=options.cards,
        wait=options.wait,
        **arguments,
    )
    tell(
        f"{path}: the part of site {options.site!r} of {options.session!r}, protocol "
        f"{options.protocol}; send it to the combining party"
    )
    return 0


def _protocol(options: argparse.Namespace) -> str | MessageProtocol:
    from dpmodels.sites import SENT

    parameters = {
        name: getattr(options, name) for name in _PROTOCOL_OPTIONS if hasattr(options, name)
    }
    if options.protocol not in SENT:
        return str(options.protocol)
    kind = SENT[options.protocol]
    unknown = [word for word in parameters if word not in kind.__dataclass_fields__]
    if unknown:
        raise ArgumentError(
            f"--{unknown[0]} is not an option of protocol {options.protocol!r}; leave it out"
        )
    protocol: MessageProtocol = kind(**parameters)
    return protocol


def _add_combine(parser: Parser) -> None:
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="files of the command site, one of each site; or the folder of an exchange",
    )
    _add_wait(parser)
    parser.add_argument(
        "--without",
        nargs="+",
        default=[],
        metavar="SITE",
        help="sites of an exchange with dropouts= whose messages are not awaited",
    )
    add_outputs(parser, "report", (*TABLES, *DATA))


def _run_combine(options: argparse.Namespace) -> int:
    require_outputs(options, *options.files)
    folder, *others = options.files
    files = options.files if others or not isdir(folder) else folder
    result = dp.combine(files, wait=options.wait, without=options.without)
    if isinstance(result, dp.sites.OpenRound):
        tell(str(result))
        return 0
    return show(result, options)


SITE_KEY: Final = Command("Make a site's key for one joint release", _add_key, _run_key)
SITE: Final = Command("Write a site's part of a joint release, for combine", _add_site, _run_site)
COMBINE: Final = Command(
    "Combine the files of all sites, at no further cost", _add_combine, _run_combine
)
