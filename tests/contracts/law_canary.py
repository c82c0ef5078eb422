"""A rare number and a rare label in the rows appear nowhere."""

import contextlib
import copy
import dataclasses
import inspect
import io
import logging
import pickle
import struct
import traceback
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import shown
import verbs_models
from contract_cases import BOOK, FORMULA, Case, table

import dpmodels as dp
from dpmodels.errors import DPModelsError
from dpmodels.results import PCAResult

NUMBER = 73.1415926
LABEL = "quokka-of-rottnest"
# A number drawn or computed for another reason begins so once in some 10⁷.
TRACES = ("73.14159", "quokka", "rottnest")
BYTES = (struct.pack("<d", NUMBER), struct.pack(">d", NUMBER), b"73.14159", b"quokka")


def rare(rows: int = 40) -> dict[str, Any]:
    """Rows of which one is rare, complete, and another has a rare label."""
    data = table(rows)
    data["age"][3] = NUMBER
    data["wage"] = data["wage"].astype(object)
    data["wage"][5] = LABEL
    data["wage"][6] = f"{NUMBER}{LABEL}"
    data["sex"] = data["sex"].astype(object)
    data["sex"][7] = LABEL
    data["region"] = data["region"].astype(object)
    data["region"][8] = NUMBER
    return data


def heard(call: Callable[[], Iterable[str]]) -> str:
    """Return all that a call says: texts, streams, warnings, log records, its exception."""
    warnings_said, out, log = [], io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            try:
                warnings_said += call()
            except Exception as error:
                warnings_said += traceback.format_exception(error)
        warnings_said += [str(warning.message) for warning in caught]
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    return "\n".join([*warnings_said, out.getvalue(), log.getvalue()])


def tells_nothing(text: str) -> None:
    for trace in TRACES:
        assert trace not in text, f"{trace} was told"


def everything(fit: Any, folder: Path) -> list[str]:
    """Return every text a result gives, and check the file it saves."""
    texts = [
        repr(fit),
        repr(fit.call),
        repr(fit.release),
        repr(getattr(fit, "coder", None)),
        fit.summary(notes="all").as_page(),
        *shown.texts(fit),
        *(shown.as_text(value) for _, value in shown.parts(fit)),
        *(file.name for file in folder.iterdir()),
    ]
    if hasattr(fit, "to_xarray"):
        texts.append(repr(fit.to_xarray()))
    if hasattr(fit, "save"):
        path = folder / "fit.nc"
        fit.save(path, overwrite=True)
        saved = path.read_bytes()
        for trace in BYTES:
            assert trace not in saved, "the saved file holds a cell"
        texts.append(dp.load(path).summary(notes="all").as_text())
    return texts


def a_fit_tells_no_cell(case: Case, folder: Path, turn: int) -> None:
    """However the rows are given: by its table, and in turns by everything that it gives."""
    data = rare()
    streams = () if case.rereads else (iter([data, pd.DataFrame(data)]),)
    forms = (data, pd.DataFrame(data), *streams)
    for place, form in enumerate(forms):
        ledger = dp.Ledger(budget=case.guarantee, adjacency=case.adjacency)

        def said() -> list[str]:
            fit = case.ask(form, ledger=ledger)  # noqa: B023
            is_whole = place == turn % len(forms)  # noqa: B023
            return (
                everything(fit, folder)
                if is_whole
                else [repr(fit), fit.summary(notes="all").as_text()]
            )

        text = heard(said)
        assert "Mechanism" in text, text
        tells_nothing(text)
        tells_nothing(repr(ledger))


def a_refusal_tells_no_cell(case: Case) -> None:
    """Of rows as words; what is pickled tells none either."""
    fit = case.ask(rare())
    assert not any(trace in pickle.dumps(fit) for trace in BYTES)
    for ask in (lambda: fit.conf_int(2.0), lambda: fit.predict(_lacking())):
        tells_nothing(heard(lambda: [repr(ask())]))  # noqa: B023
    parameters = inspect.signature(getattr(dp, case.verb.name)).parameters
    for word in set(parameters) - {"formula", "data", "eps", "inference"}:
        words = {"codebook": BOOK, word: pd.DataFrame(rare())}
        a_failure_tells_no_cell(lambda: case.fit(case.formula, rare(), **words))  # noqa: B023


def a_covariance_tells_no_cell(case: Case, folder: Path) -> None:
    text = heard(lambda: everything(case.through(verbs_models.COV).ask(rare()), folder))
    assert "Mechanism" in text, text
    tells_nothing(text)


def moments_tell_no_cell(folder: Path) -> None:
    def said() -> list[str]:
        fit = dp.dp_moments(FORMULA, rare(), codebook=BOOK, budget=dp.ZCDP(0.1))
        texts = [text for part in (fit.pca(), fit.cov()) for text in everything(part, folder)]
        return [*texts, repr(fit), str(fit.summary(notes="all"))]

    text = heard(said)
    assert "Mechanism" in text, text
    tells_nothing(text)


def a_failure_tells_no_cell(call: Callable[[], object]) -> None:
    failed = []

    def attempt() -> list[str]:
        try:
            return [repr(call())]
        except DPModelsError as error:
            failed.append(error)
            raise

    text = heard(attempt)
    assert failed, f"nothing was refused: {text}"
    tells_nothing(text)


def _lacking() -> dict[str, Any]:
    return {name: cells for name, cells in rare().items() if name != "wage"}


def _doubled() -> pd.DataFrame:
    frame = pd.DataFrame(rare())
    return pd.concat([frame, frame[["age"]]], axis=1)


def _without_header(folder: Path) -> Path:
    path = folder / "rows.csv"
    path.write_text(f"{LABEL},{NUMBER}\n{NUMBER},{LABEL}\n", encoding="utf-8")
    return path


# What the verb is given in place of the rows, or besides them, and refuses.
REFUSED_DATA: dict[str, Callable[[Path], object]] = {
    "no column": lambda folder: _lacking(),
    "a column twice": lambda folder: _doubled(),
    "rows in a list": lambda folder: [[NUMBER, LABEL]],
    "cells in a list": lambda folder: [LABEL, NUMBER],
    "a set of cells": lambda folder: {LABEL},
    "a plain array": lambda folder: np.array([[NUMBER, 1.0]]),
    "a series": lambda folder: pd.Series([NUMBER, LABEL], name="wage"),
    "ragged columns": lambda folder: rare() | {"wage": [NUMBER]},
    "a CSV file without a header": _without_header,
    "a stream whose second table lacks a column": lambda folder: iter([rare(), _lacking()]),
    "a stream whose second item is a cell": lambda folder: iter([rare(), LABEL]),
    "a formula": lambda folder: FORMULA,
}
REFUSED_WORDS: dict[str, Callable[[], dict[str, Any]]] = {
    "ledger": lambda: {"ledger": dp.Ledger(budget=dp.ZCDP(1e-9))},
    "ncomp": lambda: {"ncomp": 7},
    "codebook": lambda: {"codebook": dp.codebook(age=(0, 100))},
    "formula": lambda: {"formula": "~ log(wage)"},
    "rows as formula": lambda: {"formula": pd.DataFrame(rare())},
    "rows as codebook": lambda: {"codebook": pd.DataFrame(rare())},
    "rows as budget": lambda: {"budget": rare()["age"]},
    "rows as eps": lambda: {"budget": None, "eps": rare()["age"]},
    "rows as delta": lambda: {"budget": None, "eps": 1.0, "delta": rare()["age"]},
    "rows as scale": lambda: {"scale": rare()["age"]},
    "rows as center": lambda: {"center": pd.Series(rare()["age"])},
    "rows as row_norm": lambda: {"row_norm": rare()["age"]},
    "rows as ncomp": lambda: {"ncomp": rare()["age"]},
    "rows as mechanism": lambda: {"mechanism": rare()},
    "rows as adjacency": lambda: {"adjacency": rare()["age"].tolist()},
    "rows as ledger": lambda: {"ledger": pd.DataFrame(rare())},
}
REFUSED_OF_A_FIT: dict[str, Callable[[PCAResult, Path], object]] = {
    "transform": lambda fit, folder: fit.transform(_lacking()),
    "tidy": lambda fit, folder: fit.tidy("scores"),
    "conf_int": lambda fit, folder: fit.conf_int(2.0),
    "scores": lambda fit, folder: fit.scores,
    "fittedvalues": lambda fit, folder: fit.fittedvalues,
    "resid": lambda fit, folder: fit.resid,
    "copy": lambda fit, folder: copy.copy(dataclasses.replace(fit)),
    "load": lambda fit, folder: dp.load(_without_header(folder)),
}
