"""The numbers of releases, plans and results, to compare them with stored ones."""

import inspect
import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from dpmodels.errors import DPModelsError

_BLAS = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
# Other linear algebra may choose other axes, and with them other rows of a lattice.
like_the_recorded = pytest.mark.skipif(
    "openblas" not in _BLAS or platform.machine().lower() not in ("x86_64", "amd64"),
    reason="releases were recorded with OpenBLAS on x86-64",
)


def numbers_of(value: Any) -> Iterator[float]:
    """List all numbers of a release, in the order of its fields."""
    match value:
        case bool() | int() | float() | np.number():
            yield float(value)
        case np.ndarray():
            yield from map(float, value.ravel())
        case tuple() | list():
            for part in value:
                yield from numbers_of(part)
        case _ if is_dataclass(value):
            for field in fields(value):
                # A field that came later says nothing where it is not used.
                later = field.name in getattr(type(value), "later", ())
                if not (later and getattr(value, field.name) is field.default):
                    yield from numbers_of(getattr(value, field.name))


# Pictures, files and texts; simulations and what results were asked for.
WITHOUT_NUMBERS = ("plot", "save", "summary", "help", "to_", "at_budgets", "request")


def tidy_numbers(fit: Any) -> list[float]:
    """List the numbers of a result's table of estimates, row by row."""
    return list(numbers_in(fit.tidy()))


def public_numbers(fit: Any) -> dict[str, list[float]]:
    """List the numbers of all attributes of a result and of all methods that need no argument."""
    results = {}
    for name in dir(type(fit)):
        if name.startswith(("_", *WITHOUT_NUMBERS)):
            continue
        with suppress(DPModelsError):
            value = getattr(fit, name)
            if callable(value):
                parameters = inspect.signature(value).parameters.values()
                value = None if any(map(is_required, parameters)) else value()
            if numbers := list(numbers_in(value)):
                results[name] = numbers
    return results


def is_required(parameter: inspect.Parameter) -> bool:
    """Whether a call has to give an argument."""
    is_one = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return is_one and parameter.default is parameter.empty


def numbers_in(value: Any) -> Iterator[float]:
    """List the numbers of tables, arrays, mappings and data classes."""
    match value:
        case pd.DataFrame():
            yield from value.select_dtypes("number").to_numpy(dtype=float).ravel().tolist()
        case pd.Series() | xr.DataArray():
            yield from numbers_in(value.to_numpy())
        case xr.Dataset() | dict():
            for part in value.values():
                yield from numbers_in(part)
        case np.ndarray():
            yield from value.astype(float).ravel().tolist() if value.dtype.kind in "fiub" else ()
        case _:
            yield from numbers_of(value)
