"""The channel through which each question of a formula was answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpmodels.codebook import Codebook
from dpmodels.devices.device import Device
from dpmodels.devices.unary import Bit, UnaryDevice
from dpmodels.errors import ArgumentError, CodebookError, FormulaError, quoted, shorten
from dpmodels.formula.parse import quote, variables_in
from dpmodels.formula.values import Category
from dpmodels.released import Channel
from dpmodels.released.answers import exact
from dpmodels.variables import Categorical

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


def unary_question(factors: tuple[Category, ...], devices: Devices) -> UnaryDevice | None:
    """Return the unary device of a table of one question; None for every other table."""
    device = devices.get(factors[0].code.strip("`")) if len(factors) == 1 else None
    return device if isinstance(device, UnaryDevice) else None


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
