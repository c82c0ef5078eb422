"""A study as one HTML file: three pictures to choose cells in, with a table under each.

The file is whole: its script and its style stand in it, and its own policy forbids it to load
anything else. What it shows is data in the script, so that no name acts as markup.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import numpy as np
import xarray as xr

from dpmodels.evaluation.asked import Asked
from dpmodels.typing import Floats

# Parts that a table is drawn in, along its one axis or each of two.
_PARTS: Final = {1: 256, 2: 32}
_DIGITS: Final = 5
_DATA, _REPORT = "/*study*/null", "<!--report-->"


def page(
    asked: Asked,
    data: xr.Dataset,
    truths: Mapping[int, Floats],
    answers: Mapping[tuple[str, int], Floats],
    stamp: str,
    report: str,
) -> str:
    """Return the file's text; `report` is a fragment of HTML that has all the rest."""
    text = files("dpmodels.evaluation").joinpath("page.html").read_text("utf-8")
    before, after = text.split(_DATA)
    # A table's name could end the script or begin a comment.
    plain = json.dumps(_plain(asked, data, truths, answers, stamp), allow_nan=False)
    return before.replace(_REPORT, report) + plain.replace("<", "\\u003c") + after


def _plain(
    asked: Asked,
    data: xr.Dataset,
    truths: Mapping[int, Floats],
    answers: Mapping[tuple[str, int], Floats],
    stamp: str,
) -> dict[str, Any]:
    coordinates = ("table", "domain", "scale", "eps")
    columns = {name: data[name].to_numpy().tolist() for name in coordinates}
    lines = zip(*columns.values(), strict=True)
    cells = [dict(zip(columns, values, strict=True)) for values in lines]
    names = data["algorithm"].to_numpy().tolist()
    told = ("mean", "se", "p95", "regret", "bias")
    return {
        "stamp": stamp,
        "about": f"{asked.error}: {asked.about}. {asked.repeats} repeats in each of "
        f"{len(cells)} cells. Rows were drawn by public or simulated shapes; nothing was charged.",
        "algorithms": names,
        "baselines": asked.baselines,
        "cells": cells,
        **{name: _rounded(data[name].to_numpy()) for name in told},
        "competitive": data["competitive"].to_numpy().tolist(),
        "runs": _rounded(data["error"].to_numpy()),
        "truths": [_drawn(truths[at]) for at in range(len(cells))],
        "answers": [[_drawn(answers[name, at]) for at in range(len(cells))] for name in names],
    }


def _rounded(values: Floats) -> Any:
    """Return nested lists of numbers of few digits, None for what is not finite."""
    if values.ndim:
        return [_rounded(part) for part in values]
    value = float(values)
    return float(f"{value:.{_DIGITS - 1}e}") if math.isfinite(value) else None


def _drawn(table: Floats) -> dict[str, Any]:
    """Return a table in parts that are few enough to be drawn."""
    if table.ndim not in _PARTS:
        table = table.ravel()
    most = _PARTS[table.ndim]
    small, parts = table, 1
    for axis, cells in enumerate(table.shape):
        many = min(cells, most)
        ends = np.linspace(0, cells, many + 1).astype(np.int64)
        small = np.add.reduceat(small, ends[:-1], axis=axis) if cells else small
        parts *= max(round(cells / max(many, 1)), 1)
    return {"shape": small.shape, "parts": parts, "values": _rounded(small.ravel())}
