"""What an analyst may send: the closed language as JSON, checked before a worker sees it.

The server opens no table. It checks and prices calls on rows simulated from the codebook, as many
as the table has where their number is public, so that neither answers nor times depend on a row.

Two requests with the same key, formula, options and budget in one form, have the same answer, which
is charged once. White space between the tokens of a formula, the order of options, options that
state their default, and the notation of numbers (``1``, ``1.0`` and ``1e0``) make no difference.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple

import pandas as pd

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, GatewayError, LedgerError, quoted
from dpmodels.external_files import conform, parse
from dpmodels.models.assumed_rows import assumed_rows
from dpmodels.models.release import all_verbs
from dpmodels.privacy import ZCDP, Adjacency, Guarantee, Ledger
from dpmodels.request import canonical, plain_option
from dpmodels.sessions.call import AMOUNTS, Call, Calls, Priced, Terms, signature_of
from dpmodels.sessions.shares import budget_of, fraction, planned
from dpmodels.sites import parties
from dpmodels.typing import Plain

MOST_BYTES: Final = 65_536
_LONGEST_FORMULA: Final = 4_000
_MOST_VALUES: Final = 1_000  # Of a list, such as breaks
_MOST_COLUMNS: Final = 1_000  # Of one call: seconds of pricing rise with their square
_MOST_PLANNED: Final = 100
_PLAN_SECONDS: Final = 30.0
_FEW_SIMULATED: Final = 2_000
_MOST_SIMULATED: Final = 200_000
_SET: Final = "the curator sets it for the table: leave it out"
# Words of verbs that an analyst may not say, with what to do instead.
FORBIDDEN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("data", "sites", "protocol", "csv"), _SET),
    **dict.fromkeys(("codebook", "person", "rows", "adjacency"), _SET),
    "given": "use an earlier release on your machine, where it costs nothing",
    "ledger": "all calls are charged to your purse: leave it out",
    "budget": "write eps and delta, rho, or a share of what is left",
}
_FORBIDDEN_MECHANISMS: Final = ("none", "zero")
_AMOUNTS: Final = {"eps": float | str | None, "share": float | str | None, "delta": float | None}
SHARED: Final = {
    **_AMOUNTS,
    "rho": float | None,
    "mechanism": str,
    "subset": str | None,
    "design": Literal[False] | None,
}


class Sent(NamedTuple):
    """A request of an analyst: a verb, a formula and options as plain values."""

    verb: str
    formula: str
    options: Mapping[str, Plain]


def read_sent(body: bytes) -> Sent:
    """Read a request; ArgumentError or FrameError if it is not in the language."""
    return _sent(_parsed(body))


def read_plan(body: bytes) -> list[Sent] | Sent:
    """Read one request to be priced, or a list of them."""
    plain = _parsed(body)
    if not isinstance(plain, list):
        return _sent(plain)
    if len(plain) > _MOST_PLANNED:
        raise ArgumentError(f"{len(plain):,} calls: at most {_MOST_PLANNED} are priced at once")
    return [_sent(request) for request in plain]


def _parsed(body: bytes) -> Plain:
    if len(body) > MOST_BYTES:
        raise ArgumentError(f"a request of {len(body):,} bytes: at most {MOST_BYTES:,} are read")
    return parse(body)


def _sent(plain: Plain) -> Sent:
    if isinstance(plain, dict):
        plain = {"options": {}, **plain}
    shape = {"verb": str, "formula": str, "options": dict}
    if not isinstance(plain, dict) or set(plain) != set(shape):
        raise ArgumentError(
            'expected {"verb": "mean", "formula": "~ age", "options": {"eps": 0.1}}'
        )
    options = plain["options"]
    verb, formula = (conform(str, plain[name], name) for name in ("verb", "formula"))
    if not isinstance(options, dict):
        raise ArgumentError('options: expected an object, such as {"eps": 0.1}')
    if len(formula) > _LONGEST_FORMULA:
        raise ArgumentError(
            f"a formula of {len(formula):,} characters: at most {_LONGEST_FORMULA:,} are read"
        )
    return Sent(verb, formula, options)


def call_of_sent(sent: Sent) -> Call:
    """Return the call of a request; typed errors if the verb or a word is not allowed."""
    for word, reason in FORBIDDEN.items():
        if word in sent.options:
            raise ArgumentError(f"{word}= cannot be sent to a gateway; {reason}")
    options = dict(sent.options)
    if options.get("mechanism") in _FORBIDDEN_MECHANISMS:
        raise ArgumentError(
            f"mechanism={quoted(options['mechanism'])} releases nothing that is private and "
            "useful: leave mechanism= out"
        )
    if options.get("design") not in (None, False):
        raise ArgumentError(
            "design= cannot be sent to a gateway, since the codebook states how the rows were "
            "sampled; leave it out, or write design=false to analyse the rows unweighted"
        )
    verbs = all_verbs()
    if sent.verb not in verbs:
        raise ArgumentError(f"{quoted(sent.verb)} is not a verb: expected {', '.join(verbs)}")
    shapes = {**verbs[sent.verb].shapes, **SHARED}
    for name, value in options.items():
        _require_size(name, value)
        # A verb checks texts, truth values, null and numbers itself.
        if name in shapes and not isinstance(value, str | bool | int | float | None):
            options[name] = conform(shapes[name], value, name)
    rho = options.pop("rho", None)
    if rho is not None:
        options["budget"] = ZCDP(conform(float, rho, "rho"))
    return Calls()(sent.verb, sent.formula, **options)


def _require_size(name: str, value: object) -> None:
    for kind, most, what in ((list, _MOST_VALUES, "values"), (str, _LONGEST_FORMULA, "characters")):
        if isinstance(value, kind) and len(value) > most:
            raise ArgumentError(f"{name}: {len(value):,} {what}; at most {most:,} are read")


class Price(NamedTuple):
    """What a call would cost, and the work that it would be, from public facts."""

    mechanism: str
    cost: str
    total: str
    fits: bool
    columns: int
    passes: int

    def seconds(self, least: float, per_million: float, n_rows: int) -> float:
        """Return the time limit of the call."""
        return least + per_million * n_rows * self.columns * self.passes / 1e6


def _in_time(calls: Iterable[Call]) -> Iterator[Call]:
    """Yield calls to be priced; a GatewayError if the earlier ones took long."""
    end = time.monotonic() + _PLAN_SECONDS
    for number, call in enumerate(calls):
        if time.monotonic() > end:
            raise GatewayError(f"only {number} calls were priced in time: send fewer at once", 422)
        yield call


@dataclass(frozen=True)
class PublicTable:
    """What is public of a table: codebook, neighbours, and the number of rows if it is."""

    name: str
    codebook: Codebook
    adjacency: Adjacency
    n_rows: int | None
    # Where the simulated rows of a CSV file are written, whose number is public but not known.
    csv_path: Path | None = None

    def simulated(self, n_rows: int) -> pd.DataFrame:
        """Return rows simulated from the codebook, in which nothing is associated."""
        return assumed_rows(self.codebook).rows(n_rows)

    @cached_property
    def terms(self) -> Terms:
        """Settings of calls on simulated rows."""
        rows: object = self.simulated(min(self.n_rows or _FEW_SIMULATED, _MOST_SIMULATED))
        if self.csv_path is not None and isinstance(rows, pd.DataFrame):
            rows.to_csv(self.csv_path, index=False)
            rows = str(self.csv_path)
        return Terms(parties(rows), self.codebook, self.adjacency, None, _MOST_COLUMNS)

    def price(self, call: Call, ledger: Ledger) -> Price:
        """Price a call on the ledger of a purse; typed errors if the call is invalid."""
        priced = self.priced(call, ledger)
        (step,) = ledger.forecast([priced.events])
        strategy = priced.choice[0]
        once = getattr(strategy, "passes", "many" if priced.spec.passes else "one") == "one"
        columns = priced.spec.private.n_columns
        texts = step.price.describe(), step.total.describe()
        return Price(priced.mechanism, *texts, step.fits, columns, 1 if once else 10)

    def priced(self, call: Call, ledger: Ledger) -> Priced:
        """Return the mechanism, the plan and the charge of a call."""
        return self.terms.price(call, budget_of(call, self.terms, ledger, None), ledger)

    def plan(self, calls: Iterable[Call], ledger: Ledger) -> list[dict[str, Plain]]:
        """Price calls, one after another, as rows of a session's plan."""
        frame = planned(_in_time(calls), self.terms, ledger, 0, None).table
        frame = frame.drop(columns="identified", errors="ignore")
        text = frame.to_json(orient="records", double_precision=15)
        rows: list[dict[str, object]] = json.loads(text)
        return rows

    def require_fit(self, call: Call, ledger: Ledger) -> Price:
        """Price a call; a LedgerError if it does not fit."""
        price = self.price(call, ledger)
        if not price.fits:
            raise LedgerError(
                f"{call.name} costs {price.cost}, and the total would be {price.total}: more than "
                f"the purse or the table has left ({ledger.describe()}). Write a smaller budget"
            )
        return price


_FORMULAS: Final = ("subset",)
_BUDGET: Final = (*AMOUNTS, "delta")
_LAYOUT: Final = (
    *(tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
)
_UNCLEAR: Final = (tokenize.COMMENT, tokenize.ERRORTOKEN)


def request_key(call: Call, table: str, purse: str, total: Guarantee) -> str:
    """Return the digest under which the same request is answered by the same bytes.

    `total` is the guarantee of the purse, whose delta is that of a budget without one.
    """
    parameters = signature_of(call.verb).parameters
    options = {
        name: value
        for name, value in written(call).items()
        if name not in _BUDGET
        and repr(_unified(value)) != repr(_unified(_plain(parameters[name].default)))
    }
    options |= {name: _tokens(options[name]) for name in _FORMULAS if name in options}
    budget = _budget(call.options, total)
    request = [table, purse, call.name, _tokens(call.formula), options, budget]
    return hashlib.sha256(canonical(_unified(request))).hexdigest()


def written(call: Call) -> dict[str, object]:
    """Return the options of a call as plain values, without each None that is the default.

    >>> import dpmodels as dp
    >>> written(dp.call.pca("~ .", eps=1.0, ncomp=None, denoise=None, center=True))
    {'eps': 1.0, 'denoise': None, 'center': True}
    """
    parameters = signature_of(call.verb).parameters
    return {
        name: _plain(value)
        for name, value in call.options.items()
        if value is not None or parameters[name].default is not None
    }


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(element) for name, element in value.items()}
    return plain_option(value)


def _unified(plain: object) -> object:
    """Return a value of JSON in which whole numbers are integers."""
    if isinstance(plain, list | tuple):
        return [_unified(element) for element in plain]
    if isinstance(plain, dict):
        return {name: _unified(element) for name, element in plain.items()}
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def _budget(options: Mapping[str, object], total: Guarantee) -> object:
    budget, delta = options.get("budget"), options.get("delta")
    if budget is not None:
        return [type(budget).__name__, repr(budget), delta]
    eps, share = options.get("eps"), options.get("share")
    if isinstance(eps, str) and share is None:
        eps, share = None, eps
    if share is not None:
        share = float(fraction("share", share))
    return [eps, share, getattr(total, "delta", 0.0) if delta is None else delta]


def _tokens(formula: object) -> object:
    if not isinstance(formula, str):
        return formula
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(formula.strip()).readline))
    except (tokenize.TokenError, SyntaxError):
        return formula
    if any(token.type in _UNCLEAR for token in tokens):
        return formula
    return [token.string for token in tokens if token.type not in _LAYOUT]
