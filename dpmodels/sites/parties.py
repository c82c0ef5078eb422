"""The holders of rows: one table, or sites with a protocol between them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar, cast

from dpmodels import errors
from dpmodels.frames.delimited import RECORDS, csv_mode
from dpmodels.frames.open import Tables, records_of, with_csv_mode
from dpmodels.frames.parquet import named_files, require_once
from dpmodels.frames.sql_table import as_table, is_database
from dpmodels.mechanisms.protocol import AnyStrategy, PlanOfStrategy
from dpmodels.noise import source
from dpmodels.options import current_settings as options_chosen
from dpmodels.privacy import WRITE_DELTA, Event, PureDP
from dpmodels.released import AnyRelease
from dpmodels.request import Request
from dpmodels.sites.protocol import POOLED, Joint, SiteProtocol
from dpmodels.statistics import Statistic

if TYPE_CHECKING:  # Most calls have one table, and need none of what sites exchange.
    from dpmodels.sites.exchange import Exchange
    from dpmodels.sites.summing import MaskedSum

Bound = TypeVar("Bound")
Named = TypeVar("Named", bound="SiteProtocol")
# A choice: names of more sites do not fit a printed table.
MOST_SITES: Final = 10_000


class Witness:
    """Observes each step of a release; it can stop one by raising, and change none."""

    def requested(self, spec: object) -> None:
        """See the specification of the call, before a mechanism is chosen."""

    def planned(
        self, spec: object, choice: object, private: Sequence[object], events: Sequence[Event]
    ) -> None:
        """See what is about to be released from which rows, and charged: nothing has been read."""

    def measured(self, joint: Joint, statistics: Sequence[Statistic]) -> None:
        """See the exact statistics of all holders, which have been paid for."""


NOBODY: Final = Witness()


@dataclass(frozen=True, repr=False)
class Parties:
    """Holders of disjoint rows."""

    names: tuple[str, ...]  # Public, of the sites that take part; one empty name for one table
    data: tuple[object, ...]  # Their rows, as the user has them
    protocol: SiteProtocol | None = None  # How they release together; None for one table
    others: tuple[str, ...] = ()  # All sites of the release, where only the rows of one are here
    witness: Witness = NOBODY
    exchange: Exchange | None = None  # Of rounds, where other organisations have the other rows

    def __repr__(self) -> str:
        return f"<Parties: {len(self.names)}, rows not shown>"

    def __reduce__(self) -> NoReturn:
        raise errors.PrivacyError("sites with their rows cannot be pickled or copied")

    @property
    def records(self) -> tuple[str, ...]:
        """What rows of CSV files are, in public words; empty where none is read."""
        modes = dict.fromkeys(mode for rows in self.data for mode in records_of(rows))
        return tuple(RECORDS[mode] for mode in modes)

    @property
    def sends(self) -> bool:
        """Whether sites send something once: then their rows are not read again."""
        return self.protocol is not None and self.protocol.passes_noise and not self.joint

    @property
    def joint(self) -> bool:
        """Whether all sites take part in every round of a mechanism, by masked sums."""
        here = bool(self.data) and (self.exchange is not None or not self.others)
        return self.protocol is not None and self.protocol.many_rounds and here

    def bind(self, binding: Callable[[object], Bound]) -> tuple[Bound, ...]:
        """Bind a formula to the rows of each, and say which site an error is of."""
        bound, names_by_file, tables = [], dict[Hashable, str](), Tables(kept=True)
        for name, rows in zip(self.names, self.data, strict=True):
            try:
                require_once(named_files(rows), names_by_file)
                if is_database(rows):
                    table = as_table(rows)
                    if table in names_by_file:
                        raise errors.FrameError(
                            f"{table!r} is given twice, and its rows would count twice: give it "
                            "once"
                        )
                    names_by_file[table] = repr(table)
                design = binding(rows)
                bound.append(design if self.exchange is None else self.exchange.bound(design))
                if len(self.names) > 1:
                    for item in rows if isinstance(rows, list | tuple) else [rows]:
                        tables.require_new(item, f"a table of site {name!r}")
            except errors.FrameError as error:
                raise errors.FrameError(f"site {name!r}: {error}" if name else str(error)) from None
        return tuple(bound)

    def mechanism(
        self, requested: object, gaussian: str, request: Request, *, lawful: bool
    ) -> tuple[object, str]:
        """Return the requested mechanism, or what ``"auto"`` is if sites add the noise."""
        if self.protocol is None:
            return requested, ""
        name, verb = self.protocol.trust.name, f"dp_{request.verb}"
        if lawful and not self.protocol.lawful:
            raise errors.ArgumentError(
                f"protocol={name!r} releases the leading part of moments, from which no regression "
                "and no interval can be computed: write protocol='full' or 'secure_sum', or use "
                "dp.dp_pca or dp.dp_cov"
            )
        if not self.protocol.passes_noise:
            return requested, ""
        if not gaussian and not self.joint:
            raise errors.ArgumentError(
                f"protocol={name!r}: sites add Gaussian noise to one sum of integers, and no "
                f"mechanism of {verb} does that: write {POOLED}"
            )
        if isinstance(request.guarantee, PureDP):
            raise errors.BudgetError(
                f"protocol={name!r}: sites add Gaussian noise, which has no pure guarantee such as "
                f"{request.guarantee.describe()}: {WRITE_DELTA}, or budget=dp.ZCDP(rho), or "
                f"{POOLED}"
            )
        if self.joint or not (isinstance(requested, str) and requested == "auto"):
            return requested, ""
        return gaussian, f"under protocol {name} the sites add Gaussian noise themselves."

    def in_rounds(self, strategy: AnyStrategy) -> bool:
        """Whether all sites add the noise of a strategy's rounds."""
        if self.exchange is not None and not self.exchange.takes(strategy):
            return False
        return self.joint and self.protocol is not None and self.protocol.in_rounds(strategy)

    def shared(self, strategy: AnyStrategy) -> bool:
        """Whether sites can add the noise of a strategy, in one round or in many."""
        from dpmodels.sites.packing import GAUSSIAN

        return self.in_rounds(strategy) or isinstance(strategy, GAUSSIAN)

    def release(
        self, strategy: AnyStrategy, statistics: tuple[Statistic, ...], plan: PlanOfStrategy
    ) -> AnyRelease:
        """Release the exact statistics, one a holder; called once, after the charge."""
        if self.protocol is None:
            (statistic,) = statistics
            return strategy.release(statistic, plan, source())
        if self.exchange is not None:
            (statistic,) = statistics
            protocol = cast("MaskedSum", self.protocol)
            return self.exchange.release(protocol, strategy, statistic, plan)
        return self.protocol.release(Joint(strategy, plan, self.names), statistics, source())


def parties(data: object) -> Parties:
    """Return parties as they are, and anything else as one table."""
    return data if isinstance(data, Parties) else Parties(("",), (data,))


def together(counts: Iterable[int | None], places: int = 1) -> int | None:
    """Return the number of all rows, None if one number is unknown.

    If neighbours differ in `places` rows, it is the number of rows with the same noise whose
    neighbours differ in one.
    """
    counts_read = list(counts)
    if None in counts_read:
        return None
    return sum(count for count in counts_read if count is not None) // places


def gathered(
    data: object, sites: Mapping[str, object] | None, protocol: object, csv: object = None
) -> object:
    """Return what a verb reads: its ``data``, or the rows of its ``sites``.

    `csv` says what a row of a CSV file is, None where the call does not.
    """
    if sites is None:
        if protocol is not None:
            raise errors.ArgumentError(
                "protocol= goes with sites={'A': data_a, 'B': data_b}; leave it out for data="
            )
        if data is None:
            raise errors.FrameError("neither data nor sites are given: write one of the two")
        return data if isinstance(data, Parties) else with_csv((data,), csv)[0]
    if data is not None:
        raise errors.ArgumentError("data and sites are both given: write one of the two")
    if not isinstance(sites, Mapping) or not 1 <= len(sites) <= MOST_SITES:
        raise errors.ArgumentError(
            f"sites= is of type {type(sites).__name__}: expected a mapping of 1 to {MOST_SITES:,} "
            "names to data, such as sites={'A': data_a, 'B': data_b}"
        )
    names = tuple(sites)
    if not all(isinstance(name, str) and name for name in names):
        raise errors.ArgumentError("sites=: expected a name of each site, a text that is not empty")
    from dpmodels.sites.tables import PROTOCOLS

    if protocol is None:
        options = ", ".join(map(repr, PROTOCOLS))
        raise errors.ArgumentError(
            f"sites= needs protocol=, which says who is trusted: write one of {options}"
        )
    chosen: SiteProtocol = named_protocol(protocol, PROTOCOLS)
    seated = chosen.participants(names)
    return Parties(seated, with_csv([sites[name] for name in seated], csv), chosen)


def with_csv(tables: Sequence[object], csv: object) -> tuple[object, ...]:
    """Return tables whose CSV files are read as the call, or dp.options, declares."""
    mode = options_chosen().csv if csv is None else csv_mode(csv)
    if mode is None:
        return tuple(tables)
    if csv is not None and not any(map(records_of, tables)):
        raise errors.ArgumentError(
            f"csv={errors.quoted(csv)} goes with the path of a .csv file, and none is read: "
            "leave it out"
        )
    return tuple(with_csv_mode(table, mode) for table in tables)


def named_protocol(protocol: object, table: Mapping[str, type[Named]]) -> Named:
    """Return the protocol that a name or an instance selects."""
    for kind in table.values():
        if isinstance(protocol, kind):
            return protocol
    if not isinstance(protocol, str) or protocol not in table:
        options = ", ".join(map(repr, table))
        meant = errors.did_you_mean(protocol, table)
        raise errors.ArgumentError(
            f"protocol={errors.quoted(protocol)} is not known{meant}; expected one of {options}"
        )
    return table[protocol]()
