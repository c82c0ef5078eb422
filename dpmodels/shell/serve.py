"""The command that runs a gateway, issues and revokes its tokens, and verifies its records."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dpmodels.errors import ArgumentError, NotAvailable, did_you_mean
from dpmodels.shell.command_options import Command, Parser
from dpmodels.shell.outputs import tell

if TYPE_CHECKING:
    from dpmodels.gateway.settings import Gate

_DEMO_FOLDER: Final = "gate-demo"
_DEMO_DAYS: Final = 1.0
EXAMPLE: Final = """\
example, gate.toml:
  [gate]
  folder = "gate"                # ledgers, answers, tokens and the audit log
  certificate = "gate.pem"       # or a reverse proxy before 127.0.0.1
  key = "gate.key"

  [tables.visits]
  data = "visits.parquet"        # or database = "postgresql://...", table = "visits"
  codebook = "visits.json"
  eps = 3.0                      # of all analysts together; or rho
  delta = 1e-6
  purses = { ann = 1.0, project = 2.0 }

  [analysts]
  ann = {}
  bob = { purse = "project" }
  eve = { curator = true }

  dpmodels serve gate.toml --issue ann --days 90   # prints a token, once
  dpmodels serve gate.toml
  dpmodels serve gate.toml --verify                # ledgers, answers and the audit log

Without settings: dpmodels serve --demo, on a public table.
"""


def _add(parser: Parser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("settings", nargs="?", metavar="FILE", help="the settings, as TOML")
    parser.add_argument(
        "--demo", action="store_true", help=f"a public table, in the folder {_DEMO_FOLDER}"
    )
    parser.add_argument("--issue", metavar="NAME", help="print a new token of an analyst, and end")
    parser.add_argument("--days", type=float, default=90.0, help="for which a new token is valid")
    parser.add_argument("--revoke", metavar="NAME", help="revoke an analyst's tokens, and end")
    parser.add_argument(
        "--verify",
        nargs="?",
        const="",
        metavar="LINE",
        help="verify ledgers, answers and the audit log, with the last line of an earlier "
        "verification if given, and end",
    )
    parser.add_argument("--port", type=int, help="instead of the one in the settings")


def _run(options: argparse.Namespace) -> int:
    """Issue or revoke tokens, verify records, or serve until interrupted."""
    from dpmodels.gateway.settings import demo_gate, read_gate
    from dpmodels.gateway.state import State
    from dpmodels.gateway.worker import verified

    if options.demo == (options.settings is not None):
        raise ArgumentError("expected the settings' file, or --demo: dpmodels serve gate.toml")
    gate = demo_gate(Path(_DEMO_FOLDER)) if options.demo else read_gate(Path(options.settings))
    for name in filter(None, (options.issue, options.revoke)):
        if name not in gate.analysts:
            raise ArgumentError(f"{name!r} is not an analyst{did_you_mean(name, gate.analysts)}")
    if options.issue:
        tell(State(gate.folder).issue_token(options.issue, options.days))
        return 0
    if options.revoke:
        tell(f"{State(gate.folder).revoke_tokens(options.revoke)} tokens were revoked")
        return 0
    if options.verify is not None:
        tell(verified(gate, options.verify))
        return 0
    return _serve(gate, options.port or gate.server.port, demo=options.demo)


def _serve(gate: Gate, port: int, *, demo: bool) -> int:
    if not all(map(find_spec, ("starlette", "uvicorn", "jinja2"))):
        raise NotAvailable(
            "dpmodels serve needs starlette, uvicorn and jinja2: pip install dpmodels[gate]"
        )
    import uvicorn

    from dpmodels.gateway.server import application
    from dpmodels.gateway.service import Service

    service = Service(gate)
    scheme = "http" if gate.server.certificate is None else "https"
    address = f"{scheme}://{gate.server.host}:{port}"
    tell(f"{address} serves {', '.join(gate.tables)}; interrupt to stop")
    if demo:
        tell(_demo(address, service.state.issue_token("ann", _DEMO_DAYS)))
    try:
        # Neither requests nor errors are logged: the audit log has what is public.
        uvicorn.run(
            application(service),
            host=gate.server.host,
            port=port,
            ssl_certfile=gate.server.certificate,
            ssl_keyfile=gate.server.key,
            log_config=None,
            log_level="critical",
            access_log=False,
            http="h11",  # Limits the size of headers
            ws="none",
            server_header=False,
        )
    finally:
        service.stop()
    return 0


def _demo(address: str, token: str) -> str:
    """Return lines that ask the demonstration, to be copied."""
    return (
        f"\nOpen {address} in a browser, with the token {token}\n"
        "\nOr ask from another terminal, as ann:\n"
        f"""  python -c 'import dpmodels as dp; visits = dp.connect("{address}", """
        f"""token="{token}").table("visits"); """
        """print(visits.mean("mdvis ~ idp", eps=0.2).summary())'"""
    )


SERVE: Final = Command("Serve tables to analysts who may not see the rows", _add, _run)
