"""The settings of a gateway: tables, budgets, purses and analysts, from a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from dpmodels.arguments import between, integer
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FrameError, did_you_mean, quoted
from dpmodels.external_files import conform, read_bytes
from dpmodels.frames.sql_table import sql
from dpmodels.privacy import Adjacency, ApproxDP, Guarantee, Ledger, resolve_budget
from dpmodels.privacy.budget import ZCDP
from dpmodels.request import related
from dpmodels.typing import Plain

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings", bound="DataclassInstance")
_MOST_BYTES: Final = 1_000_000
# Rows assumed for time limits where their number is private.
_ASSUMED_ROWS: Final = 1_000_000


@dataclass(frozen=True)
class PurseSettings:
    """The budget of an analyst or project."""

    amount: float
    reserved: bool = False


@dataclass(frozen=True)
class TableSettings:
    """A table, its budget and its workers."""

    codebook: str
    data: str | None = None  # A path
    database: str | None = None  # Or a URL, with the name of a table in it
    table: str | None = None
    eps: float | None = None
    delta: float = 0.0
    rho: float | None = None
    adjacency: Literal["replace", "add-remove"] = "replace"
    person: str | None = None
    rows: int | None = None
    csv: Literal["records", "lines"] | None = None
    approval: bool = False  # Whether a curator approves each job
    workers: int = 1
    memory_gib: float = 8.0  # Of a worker
    # The time limit of a job: seconds, plus seconds for a million cells of its variables.
    least_seconds: float = 5.0
    seconds_per_million: float = 20.0
    n_at_most: int = _ASSUMED_ROWS  # For time limits, where the number of rows is private

    @property
    def guarantee(self) -> Guarantee:
        """The budget of all analysts together."""
        return resolve_budget(self.eps, self.delta, None if self.rho is None else ZCDP(self.rho))

    def neighbours(self, book: Codebook) -> Adjacency:
        """Return the neighbours of the guarantee."""
        return related(book, self.adjacency, self.person, self.rows)

    @property
    def is_csv(self) -> bool:
        """Whether the rows are in a CSV file."""
        return self.data is not None and self.data.lower().endswith((".csv", ".csv.gz"))

    def source(self) -> object:
        """Name the rows for ``data=``; nothing is opened."""
        return self.data if self.database is None else sql(self.database, self.table)


@dataclass(frozen=True)
class AnalystSettings:
    """Who sends requests: an analyst with a purse, or a curator."""

    purse: str
    curator: bool = False
    oidc: str | None = None  # The claim of the identity provider's tokens for this analyst


@dataclass(frozen=True)
class OidcSettings:
    """The identity provider (OpenID Connect) whose tokens are accepted."""

    issuer: str
    audience: str
    keys: str  # A path: JSON Web Key Set, or PEM
    claim: str = "sub"  # Whose value is an analyst's `oidc`
    leeway_seconds: float = 60.0  # For clocks that differ


@dataclass(frozen=True)
class ServerSettings:
    """Where the server listens, and when it answers."""

    folder: str = "gate"
    host: str = "127.0.0.1"
    port: int = 8417
    certificate: str | None = None
    key: str | None = None
    tick_seconds: float = 5.0  # Answers are handed out at multiples of this; 0 in tests only
    requests_per_minute: int = 300


@dataclass(frozen=True)
class Gate:
    """All settings."""

    folder: Path  # Of ledgers, answers and the state
    server: ServerSettings
    tables: Mapping[str, TableSettings]
    purses: Mapping[str, Mapping[str, PurseSettings]]  # By table and name
    analysts: Mapping[str, AnalystSettings]
    oidc: OidcSettings | None = None

    def ledger_path(self, table: str) -> Path:
        """Return the file of a table's ledger."""
        return self.folder / f"{table}.ledger"

    def open_ledger(self, table: str) -> Ledger:
        """Open or create the ledger of a table, and declare its purses."""
        settings, path = self.tables[table], self.ledger_path(table)
        book = Codebook.load(settings.codebook)
        guarantee, relation = settings.guarantee, settings.neighbours(book)
        rule = "steps" if isinstance(guarantee, ApproxDP) else None
        ledger = Ledger.open(path, budget=guarantee, adjacency=relation, rule=rule, new=True)
        declared = {purse.name: purse for purse in ledger.purses}
        for name, purse in self.purses[table].items():
            if name not in declared:
                ledger.add_purse(name, purse.amount, reserved=purse.reserved)
            elif declared[name].plain()["amount"] != purse.amount:
                raise ArgumentError(
                    f"the purse {name!r} of {table!r} has {declared[name].describe()}, and "
                    f"its amount cannot become {purse.amount:g}: restore it, or use another name"
                )
        return ledger


def read_gate(path: Path) -> Gate:
    """Read the settings; paths are relative to the file's folder.

    Raises
    ------
    FrameError, ArgumentError, BudgetError, CodebookError
        The message names the first fault; nothing was opened or created.
    """
    try:
        plain = tomllib.loads(read_bytes(path, _MOST_BYTES).decode("utf-8"))
    except (ValueError, FrameError) as error:
        raise FrameError(f"{str(path)!r} cannot be read as TOML: {error}") from None
    return gate_of(plain, path.parent)


def gate_of(plain: Mapping[str, Plain], base: Path) -> Gate:
    """Check settings as plain values, and return them."""
    _require_names(plain, ("gate", "tables", "analysts", "oidc"), "the settings")
    server = _conform(ServerSettings, plain.get("gate", {}), "[gate]")
    between("tick_seconds", server.tick_seconds, 0, 3600, "; write tick_seconds = 5")
    tables = {}
    purses = {}
    for name, table in dict(plain.get("tables", {})).items():
        _require_name(name, "a table")
        entries = dict(table)
        purses[name] = _purses(entries.pop("purses", {}), f"[tables.{name}.purses]")
        where = f"[tables.{name}]"
        if ("data" in entries) == ("database" in entries):
            raise ArgumentError(f'{where}: expected either data = "rows.csv" or database = "..."')
        settings = _conform(TableSettings, entries, where)
        integer(f"{where} workers", settings.workers, 1, 64)
        data = None if settings.data is None else str(base / settings.data)
        tables[name] = replace(settings, codebook=str(base / settings.codebook), data=data)
        ledger = Ledger(budget=tables[name].guarantee)
        for purse_name, purse in purses[name].items():
            ledger.add_purse(purse_name, purse.amount, reserved=purse.reserved)
    if not tables:
        raise ArgumentError('no table is declared: write [tables.visits] with data = "visits.csv"')
    analysts = {}
    for name, settings in dict(plain.get("analysts", {})).items():
        entry = {"purse": _require_name(name, "an analyst"), **settings}
        analysts[name] = _conform(AnalystSettings, entry, f"[analysts.{name}]")
    oidc = _oidc(plain["oidc"], analysts, base) if "oidc" in plain else None
    return Gate(base / server.folder, server, tables, purses, analysts, oidc)


def _oidc(
    plain: Mapping[str, Plain], analysts: Mapping[str, AnalystSettings], base: Path
) -> OidcSettings:
    settings = _conform(OidcSettings, plain, "[oidc]")
    between("[oidc] leeway_seconds", settings.leeway_seconds, 0, 600, "; write 60")
    claims = [analyst.oidc for analyst in analysts.values() if analyst.oidc is not None]
    if len(set(claims)) < len(claims) or not claims:
        raise ArgumentError('[oidc] needs analysts with different claims: ann = { oidc = "..." }')
    return replace(settings, keys=str(base / settings.keys))


def _conform(kind: type[Settings], plain: Mapping[str, Plain], where: str) -> Settings:
    defaults = {field.name: field.default for field in fields(kind)}
    _require_names(plain, defaults, where)
    stated = {name: value for name, value in defaults.items() if value is not MISSING}
    settings: Settings = conform(kind, {**stated, **plain}, where)
    return settings


def _purses(plain: Mapping[str, object], where: str) -> dict[str, PurseSettings]:
    purses = {}
    for name, value in plain.items():
        entry = value if isinstance(value, dict) else {"amount": value}
        purses[_require_name(name, "a purse")] = _conform(PurseSettings, entry, f"{where} {name}")
    return purses


def _require_name(name: str, what: str) -> str:
    if not (name.isidentifier() and name.isascii() and len(name) <= 60):
        raise ArgumentError(
            f"{what} named {quoted(name)}: expected letters, digits and underscores, at most 60"
        )
    return name


def _require_names(plain: Mapping[str, object], expected: Collection[str], where: str) -> None:
    for name in plain:
        if name not in expected:
            raise ArgumentError(
                f"{where}: {quoted(name)} is not expected{did_you_mean(name, expected)}; expected "
                f"{', '.join(expected)}"
            )


def demo_gate(folder: Path) -> Gate:
    """Return the settings of a demonstration on a public table, and write its files."""
    from dpmodels.datasets import load_randhie, randhie_codebook

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "visits.csv").exists():
        load_randhie().to_csv(folder / "visits.csv", index=False)
        randhie_codebook().save(folder / "visits.json")
    table = {
        "data": "visits.csv",
        "codebook": "visits.json",
        "eps": 3.0,
        "delta": 1e-6,
        "n_at_most": 21_000,
        "purses": {"ann": 2.0, "bob": 2.0},
    }
    plain = {
        "gate": {"folder": "."},
        "tables": {"visits": table},
        "analysts": {"ann": {}, "bob": {}, "curator": {"curator": True}},
    }
    return gate_of(plain, folder)
