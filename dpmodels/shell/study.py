"""A study file: the releases from one table, checked before any of them is made."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import dpmodels as dp
from dpmodels.dictionaries.codebook_class import read
from dpmodels.errors import (
    ArgumentError,
    BudgetError,
    DPModelsError,
    FrameError,
    did_you_mean,
    shorten,
)
from dpmodels.external_files import conform, read_bytes
from dpmodels.frames.sql_table import located
from dpmodels.models.etable import look_of
from dpmodels.results.etable import columns_of
from dpmodels.results.etable_columns import ACCEPTED
from dpmodels.sessions.call import AMOUNTS, Call, signature_of
from dpmodels.shell.command_options import codebook_advice
from dpmodels.typing import Plain
from dpmodels.verbs import evaluated_signature, members, signature

_MOST_BYTES: Final = 2**20
_STUDY: Final[Mapping[str, object]] = {
    **dict.fromkeys(("title", "author", "data", "codebook", "subset", "ledger", "out"), str),
    **dict.fromkeys(("eps", "delta", "rho"), float),
    "adjacency": Literal["replace", "add-remove"],
    "csv": Literal["records", "lines"],
    "person": str | bool,
    "rows": int | str,
    "n": int,
}
# Keys of a release besides its verb's options, and of a table besides those of dp.etable.
_RELEASE: Final = ("name", "verb", "formula", "rho", "plots")
_TABLE: Final = ("name", "of")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TAKEN: Final = ("index", "study", "disclosure", "ledger")


@dataclass(frozen=True)
class StudyRelease:
    """One release of a study: its call, and its entry in the file."""

    name: str
    call: Call
    plots: bool
    json_text: str  # The entry as one line of JSON

    @property
    def call_text(self) -> str:
        """The call as the file writes it."""
        options = json.loads(self.json_text)
        verb, formula = options.pop("verb"), options.pop("formula")
        arguments = [repr(formula), *(f"{a} = {b!r}" for a, b in options.items())]
        return f"{verb}({', '.join(arguments)})"


@dataclass(frozen=True)
class Table:
    """Results side by side: the names of their releases, and options of dp.etable."""

    name: str
    of: tuple[str, ...]
    kwargs: Mapping[str, Plain]


@dataclass(frozen=True)
class Study:
    """The contents of a study file; no data were opened."""

    path: Path
    settings: Mapping[str, Plain]  # Section [study], with paths from the file's folder
    releases: tuple[StudyRelease, ...]
    tables: tuple[Table, ...] = ()
    disclosure: Mapping[str, object] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        """The output folder."""
        return Path(self.settings["out"])

    @property
    def title(self) -> str:
        """The title of the pages."""
        return str(self.settings.get("title", self.path.stem))

    @property
    def ledger(self) -> Path:
        """The file of the one ledger."""
        return Path(self.settings.get("ledger", self.out / "study.ledger"))

    def session(self, ledger: Path | None) -> dp.session:
        """Open the table with these settings; no row is read."""
        option_names = ("codebook", "adjacency", "person", "rows", "subset", "csv", "eps", "delta")
        kwargs = {name: self.settings[name] for name in option_names if name in self.settings}
        if "codebook" in kwargs:
            formulas = [release.call.formula for release in self.releases]
            text = "\n".join([*formulas, str(self.settings.get("subset", ""))])
            kwargs["codebook"] = read(str(kwargs["codebook"])).codebook_for(text)
        if "rho" in self.settings:
            kwargs["budget"] = dp.ZCDP(self.settings["rho"])
        elif ledger is None and "eps" not in kwargs:
            raise BudgetError("[study] has no budget: write eps = 1.0, or rho = 0.1")
        with codebook_advice(' Write codebook = "cb.json", a file, in [study].'):
            return dp.session(self.settings["data"], ledger=ledger, **kwargs)

    def preview_session(self) -> dp.session:
        """Open the table with its ledger if that exists; create nothing."""
        return self.session(self.ledger if self.ledger.exists() else None)


def read_study(path: str) -> Study:
    """Read a file; an error names the section and what is allowed there."""
    try:
        plain = tomllib.loads(read_bytes(path, _MOST_BYTES).decode("utf-8-sig"))
    except (FrameError, ValueError) as error:
        raise FrameError(f"{path!r} is not a study in TOML: {error}") from None
    require_known(plain, ("study", "release", "table", "disclosure"), "the file")
    for section, kind in (("study", dict), ("release", list)):
        if not isinstance(plain.get(section), kind) or not plain[section]:
            header = "[study]" if kind is dict else "[[release]]"
            raise ArgumentError(f"{path!r} has no {header}: write one, see dpmodels run --help")
    settings = _settings(plain["study"], Path(path).absolute().parent)
    releases = tuple(map(_release, _sections(plain, "release")))
    _require_unique([release.name for release in releases], "release")
    verbs = {release.name: release.call.verb for release in releases}
    names = list(verbs)
    tables = tuple(_table(entry, verbs) for entry in _sections(plain, "table"))
    _require_unique([*names, *(table.name for table in tables)], "table")
    disclosure = _disclosure_options(plain.get("disclosure", {}))
    return Study(Path(path), settings, releases, tables, disclosure)


def require_known(names: Collection[str], options: Collection[str], where: str) -> None:
    """Refuse unknown names; suggest the nearest known one."""
    for name in names:
        if name not in options:
            raise ArgumentError(
                f"{where}: {shorten(name)!r} is not known{did_you_mean(name, options)}; expected "
                f"{', '.join(options)}"
            )


def _sections(plain: Mapping[str, object], section: str) -> list[dict[str, object]]:
    entries = plain.get(section, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ArgumentError(f"[{section}]: write [[{section}]], one for each")
    return entries


def _settings(plain: Mapping[str, object], beside: Path) -> dict[str, object]:
    require_known(plain, _STUDY, "[study]")
    settings = {
        name: conform(_STUDY[name], value, f"[study] {name}") for name, value in plain.items()
    }
    for name in ("data", "out"):
        _require_key(settings, name, "[study]")
    if "rho" in settings and {"eps", "delta"} & {*settings}:
        raise BudgetError("[study] rho is a whole budget: leave out eps and delta, or rho")
    if settings.get("person") is True:
        raise ArgumentError('[study] person = true: write the column, person = "id", or false')
    for name in ("data", "codebook", "ledger", "out"):
        if name in settings:
            if not str(settings[name]).strip():
                raise ArgumentError(f'[study] {name} = "": write a path, or leave the line out')
            settings[name] = located(str(settings[name]), beside)
    return settings


def _release(plain: Mapping[str, Plain]) -> StudyRelease:
    name = _checked_name(plain, "release")
    where = f"release {name!r}"
    verb = _text(plain, "verb", where)
    with _error_location(where):
        kind = dp.call(verb, "~ 1").verb
    parameters = signature_of(kind).parameters
    budgets = [word for word in parameters if word != "budget"]
    require_known(plain, dict.fromkeys((*_RELEASE, *budgets)), where)
    formula = _text(plain, "formula", where)
    for word, parameter in parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            _require_key(plain, word, where)
    arguments = {word: plain[word] for word in plain if word not in _RELEASE}
    kwargs = dict(_read(signature(kind), arguments))
    if "rho" in plain:
        with _error_location(where):
            kwargs["budget"] = dp.ZCDP(conform(float, plain["rho"], "rho"))
    if sum(word in kwargs for word in AMOUNTS) > 1:
        raise BudgetError(f"{where}: write one of eps, share and rho")
    declaration = {word: value for word, value in plain.items() if word not in ("name", "plots")}
    plots = conform(bool, plain.get("plots", True), f"{where}: plots")
    return StudyRelease(name, dp.call(verb, formula, **kwargs), plots, canonical_json(declaration))


def _read(
    parameters: Mapping[str, inspect.Parameter], arguments: Mapping[str, Plain]
) -> Iterator[tuple[str, object]]:
    """Convert values of TOML to arguments: "none" to None where allowed, dates to text."""
    for word, value in arguments.items():
        parameter = parameters.get(word)
        if parameter is not None and value == "none" and parameter.default is not None:
            yield word, None if None in members(parameter.annotation) else value
        else:
            yield word, tuple(map(_day, value)) if isinstance(value, list) else _day(value)


def _day(value: Plain) -> Plain:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _table(plain: Mapping[str, object], verbs: Mapping[str, Callable[..., object]]) -> Table:
    name = _checked_name(plain, "table")
    where, options = f"table {name!r}", keyword_names(dp.etable)
    require_known(plain, (*_TABLE, *options), where)
    of = conform(tuple[str, ...], plain.get("of", list(verbs)), f"{where}: of")
    require_known(of, verbs, f"{where}: of")
    kwargs = {word: value for word, value in plain.items() if word not in _TABLE}
    with _error_location(where):
        if not of:
            raise ArgumentError("of: names no release; write one, or leave it out for all")
        for release in of:
            kinds = members(evaluated_signature(verbs[release]).return_annotation)
            if all(columns_of.dispatch(kind) is columns_of.dispatch(object) for kind in kinds):
                raise ArgumentError(
                    f"of: the result of release {release!r} has no column in a table. Write "
                    f"of = [...] with names of {ACCEPTED}"
                )
        looks = signature(look_of)
        look_of(**{word: kwargs.get(word, signature(dp.etable)[word].default) for word in looks})
    return Table(name, of, kwargs)


@contextmanager
def _error_location(where: str) -> Iterator[None]:
    try:
        yield
    except DPModelsError as error:
        error.args = (f"{where}: {error}",)
        raise


def _disclosure_options(plain: Plain) -> dict[str, object]:
    if not isinstance(plain, dict):
        raise ArgumentError("[disclosure]: expected one section, not a list")
    require_known(plain, keyword_names(dp.disclosure), "[disclosure]")
    kwargs = {word: _day(value) for word, value in plain.items()}
    with _error_location("[disclosure]"):
        dp.disclosure(dp.Ledger(eps=1.0), **kwargs)
    return kwargs


def keyword_names(function: Callable[..., object]) -> list[str]:
    """Return the keyword-only parameters of a function that a study file may set."""
    parameters = signature(function).items()
    return [
        name
        for name, parameter in parameters
        if parameter.kind == parameter.KEYWORD_ONLY and name != "ledger"
    ]


def canonical_json(plain: object) -> str:
    """Return one line of JSON, the same for equal values."""
    return json.dumps(plain, sort_keys=True, default=str)


def _checked_name(plain: Mapping[str, Plain], section: str) -> str:
    name = _text(plain, "name", f"[[{section}]]")
    if not _NAME.fullmatch(name) or name.lower() in _TAKEN:
        raise ArgumentError(
            f"[[{section}]] name = {shorten(name)!r}: expected a file name of letters, digits, - "
            f"and _, other than {', '.join(_TAKEN)}"
        )
    return name


def _text(plain: Mapping[str, object], key: str, where: str) -> str:
    _require_key(plain, key, where)
    return str(conform(str, plain[key], f"{where}: {key}"))


def _require_key(plain: Collection[str], key: str, where: str) -> None:
    if key not in plain:
        raise ArgumentError(f'{where} lacks {key!r}: write {key} = "..."')


def _require_unique(names: list[str], section: str) -> None:
    lower = [name.lower() for name in names]
    for index, name in enumerate(names):
        if lower.index(name.lower()) < index:
            raise ArgumentError(f"[[{section}]] name = {name!r} occurs twice; give another")
