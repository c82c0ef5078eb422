"""Read randomised answers, coded by the codebook, with weights and strata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.arguments import real
from dpmodels.codebook import Codebook
from dpmodels.design.columns import converted, read_rows
from dpmodels.devices.randomized_response import Bit, Device, UnaryDevice
from dpmodels.errors import ArgumentError, CodebookError, FormulaError, quoted, shorten
from dpmodels.formula.parse import quote, variables_in
from dpmodels.formula.response import TwoSided
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Category, Columns
from dpmodels.frames import open_rows, require_declared
from dpmodels.levels import Level
from dpmodels.postprocess.response import CorrectedRows, ResponseFit, ResponseRows, fitted
from dpmodels.released import Channel
from dpmodels.released.answers import exact
from dpmodels.typing import Floats
from dpmodels.variables import Categorical, Numeric

Devices = Mapping[str, Device | Bit | UnaryDevice]


def checked_devices(devices: object) -> Devices:
    """Return devices by variable, or refuse them."""
    if not isinstance(devices, Mapping) or not devices:
        raise ArgumentError(
            f"device={quoted(devices)}: expected the device of each randomised question, such as "
            'device={"drug": dp.randomized_response(["no", "yes"], eps=1.0)}; use dp_table for '
            "rows that were not randomised"
        )
    for name, device in devices.items():
        if not isinstance(name, str) or not isinstance(device, Device | Bit | UnaryDevice):
            raise ArgumentError(
                f"device[{quoted(name)}] is of type {type(device).__name__}: expected "
                'dp.randomized_response(["no", "yes"], eps=1.0)'
            )
    return devices


def with_levels(codebook: Codebook, devices: Devices) -> Codebook:
    """Declare the levels of devices; CodebookError if the codebook declares other levels."""
    for name, device in devices.items():
        declared = codebook.get(name)
        if declared is None:
            codebook = codebook | {name: Categorical(device.levels)}
        elif not isinstance(declared, Categorical) or set(declared.levels) != set(device.levels):
            raise CodebookError(
                f"{name!r} has other levels in the codebook than in its device; both need the "
                f"levels {shorten(repr(list(device.levels)))}"
            )
    return codebook


def channel_of(name: str, codebook: Codebook, device: Device | Bit | UnaryDevice) -> Channel:
    """Return a device's channel, with its law in the order of the codebook's levels."""
    if isinstance(device, UnaryDevice):
        raise FormulaError(
            f"{name!r} was answered with a bit for each level: write '~ {name}' for the table of "
            "all levels, or one level as a variable, with device=device.questions"
        )
    declared = codebook[name]
    assert isinstance(declared, Categorical)
    channel = device.channel
    law = dict(zip(device.levels, channel.law, strict=True))
    return replace(channel, law=tuple(law[level] for level in declared.levels))


def channels_of(
    text: str, factors: tuple[Category, ...], codebook: Codebook, devices: Devices
) -> tuple[Channel, ...]:
    """Return the channel of each factor of a table; FormulaError for a transformed question.

    At least one has to be randomised, since only devices give the table a guarantee.
    """
    channels = []
    for factor in factors:
        randomised = [name for name in variables_in(factor.code) if name in devices]
        if not randomised:
            channels.append(exact(len(factor.levels)))
            continue
        (name,) = randomised[:1]
        if factor.code != quote(name):
            raise FormulaError(
                f"{shorten(factor.code)!r}: {name!r} was randomised before any transformation; "
                "write the variable alone"
            )
        channels.append(channel_of(name, codebook, devices[name]))
    if not any(channel.how for channel in channels):
        raise FormulaError(
            f"formula {shorten(text)!r} has no randomised question, so its answers would not be "
            f"protected; name one of device=, {shorten(', '.join(map(repr, devices)))}, or use "
            "dp_table, which charges a budget"
        )
    return tuple(channels)


Strata = str | Mapping[str, Mapping[Level, float]] | None


class Chunk(NamedTuple):
    """Some respondents: their answers, weights (nan if unknown) and strata (-1 if unknown)."""

    columns: Columns
    weights: Floats
    strata: NDArray[np.intp]


@dataclass(frozen=True)
class Respondents:
    """The respondents of a survey and its sampling design.

    `shares` are the population shares of the strata, if known.
    """

    data: object
    codebook: Codebook  # of all variables read
    weighted: str | None
    stratified: str | None
    shares: tuple[float, ...] | None

    @cached_property
    def strata(self) -> tuple[str, ...]:
        """Names of the strata; empty without strata."""
        if self.stratified is None:
            return ()
        declared = self.codebook[self.stratified]
        assert isinstance(declared, Categorical)
        return tuple(map(str, declared.levels))

    def chunks(self) -> Iterator[Chunk]:
        """Read the answers once."""
        source = open_rows(self.data)
        require_declared(source, self.codebook)
        names = tuple(self.codebook)
        for chunk in source.chunks(names, read_rows(len(names))):
            columns = converted(self.codebook, chunk)
            size = len(next(iter(columns.values())))
            yield Chunk(columns, self._weights(columns, size), self._strata(columns, size))

    def _weights(self, columns: Columns, size: int) -> Floats:
        if self.weighted is None:
            return np.ones(size)
        declared = self.codebook[self.weighted]
        assert isinstance(declared, Numeric)
        weights = np.clip(columns[self.weighted], declared.lower, declared.upper)
        return np.where(weights > 0, weights, np.nan)

    def _strata(self, columns: Columns, size: int) -> NDArray[np.intp]:
        if self.stratified is None:
            return np.zeros(size, dtype=np.intp)
        codes = columns[self.stratified]
        return np.where(np.isnan(codes), -1, codes).astype(np.intp)


def respondents(
    data: object, used: Codebook, book: Codebook, weights: str | None, strata: Strata
) -> Respondents:
    """Return the respondents with the variables used; errors precede reading."""
    name, shares = _named(strata, book)
    for argument, variable, kind, example in (
        ("weights", weights, Numeric, "w=(0, 50)"),
        ("strata", name, Categorical, 'region=["n", "s"]'),
    ):
        if variable is not None and not isinstance(book.get(variable), kind):
            raise CodebookError(
                f"{argument}={quoted(variable)}: expected a variable of the codebook, declared as "
                f"in dp.codebook(..., {example})"
            )
    if weights is not None:
        declared = book[weights]
        if isinstance(declared, Numeric) and declared.lower < 0:
            raise CodebookError(
                f"weights={weights!r} is declared from {declared.lower:g}; expected 0 or more"
            )
    extra = [variable for variable in (weights, name) if variable is not None]
    return Respondents(
        data, used | {variable: book[variable] for variable in extra}, weights, name, shares
    )


def _named(strata: object, book: Codebook) -> tuple[str | None, tuple[float, ...] | None]:
    """Return the variable of the strata, and the population's shares if given."""
    if strata is None or isinstance(strata, str):
        return strata, None
    if not isinstance(strata, Mapping) or len(strata) != 1:
        raise ArgumentError(
            f"strata={quoted(strata)}: expected a variable, strata='region', or one with its "
            "population shares or sizes, strata={'region': {'n': 0.4, 's': 0.6}}"
        )
    ((name, population),) = strata.items()
    declared = book.get(name)
    if not isinstance(declared, Categorical):
        return name, None
    if not isinstance(population, Mapping) or set(population) != set(declared.levels):
        raise ArgumentError(
            f"strata={{{name!r}: ...}}: expected the share of each level, "
            f"{', '.join(map(repr, declared.levels))}"
        )
    sizes = tuple(real(population[level]) for level in declared.levels)
    if not all(size > 0 for size in sizes):
        raise ArgumentError(f"strata={{{name!r}: ...}}: expected numbers above 0")
    return name, tuple(size / sum(sizes) for size in sizes)


# Answers counted by stratum, with their weights.


class Counted(NamedTuple):
    """Numbers of answers, sums of weights and of their squares, each (strata, cells)."""

    values: Floats
    weights: Floats
    squares: Floats
    complete: int
    incomplete: int


def counted_answers(sample: Respondents, tally: Tally) -> Counted:
    """Count the answers; a missing or undeclared answer makes a respondent incomplete."""
    return _counted(sample, tally.cells, lambda columns: tally.place(columns).cells[:, None])


def counted_bits(sample: Respondents, names: Sequence[str]) -> Counted:
    """Count the zeros and ones of each column; respondents need an answer in all of them."""
    starts = 2 * np.arange(len(names))

    def positions(columns: Columns) -> NDArray[np.intp]:
        bits = np.stack([columns[name] for name in names], axis=1)
        complete = ~np.isnan(bits).any(axis=1, keepdims=True)
        return np.where(complete, starts + np.where(complete, bits, 0.0), -1.0).astype(np.intp)

    return _counted(sample, 2 * len(names), positions)


def _counted(
    sample: Respondents, n_cells: int, positions: Callable[[Columns], NDArray[np.intp]]
) -> Counted:
    """Count respondents in their cells, each in as many, -1 where an answer is missing."""
    shape = max(len(sample.strata), 1), n_cells
    sums = np.zeros((3, shape[0] * shape[1]))
    n_rows = n_complete = 0
    for columns, weights, strata in sample.chunks():
        cells = positions(columns)
        complete = (cells[:, 0] >= 0) & (strata >= 0) & ~np.isnan(weights)
        flat = strata[complete, None] * n_cells + cells[complete]
        weight = np.broadcast_to(weights[complete, None], flat.shape).ravel()
        for index, power in enumerate((np.ones_like(weight), weight, weight**2)):
            sums[index] += np.bincount(flat.ravel(), power, sums.shape[1])
        n_rows += len(cells)
        n_complete += int(complete.sum())
    values, weighed, squares = sums.reshape(3, *shape)
    return Counted(values, weighed, squares, n_complete, n_rows - n_complete)


# A logistic regression of randomised answers.


def fitted_answers(
    sample: Respondents, formula: TwoSided, truth: float, forced: float, method: str
) -> tuple[ResponseFit, ResponseFit, int, int]:
    """Fit the answers of all complete respondents, by corrected scores or by likelihood.

    Returns the fit, that of the constant alone, and the numbers of complete and other respondents.
    An answer is 1 with probability `forced` whatever the truth, and the truth with probability
    `truth`.
    """
    empty, n_rows = np.empty(0), 0
    start = np.empty((0, formula.intercept + len(formula.terms.names)))
    lines = [(start, empty, empty, empty.astype(np.intp))]
    for chunk in sample.chunks():
        size = len(next(iter(chunk.columns.values())))
        n_constant = int(formula.intercept)
        out = np.ones((n_constant + len(formula.terms.names), size))
        formula.terms.evaluate(chunk.columns, out[n_constant:])
        block = out.T
        answer = formula.response.blocks[0].factors[0].evaluate(chunk.columns)
        is_complete = (chunk.strata >= 0) & ~np.isnan(block).any(axis=1)
        is_complete &= ~np.isnan(answer) & ~np.isnan(chunk.weights)
        weights, strata = chunk.weights[is_complete], chunk.strata[is_complete]
        lines.append((block[is_complete], answer[is_complete], weights, strata))
        n_rows += len(answer)
    rows = CorrectedRows if method == "score" else ResponseRows
    coded, answers, weights, strata = map(np.concatenate, zip(*lines, strict=True))
    data = rows(coded, answers, weights, strata, truth, forced)
    complete = len(data.answers)
    constant = replace(data, coded=np.ones((complete, 1)))
    return fitted(data), fitted(constant), complete, n_rows - complete
