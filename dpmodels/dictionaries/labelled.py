"""Variable metadata of SPSS, Stata and SAS files; their rows are not read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

from dpmodels.codebook import MOST_BYTES
from dpmodels.dictionaries.entry import Entry, settled
from dpmodels.dictionaries.notation import codes_between, one_line
from dpmodels.errors import CodebookError, FrameError
from dpmodels.external_files import conform, parse
from dpmodels.levels import Level

READERS: Final = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
# Declared missing values of SPSS are read only with this option.
_MORE: Final = {"read_sav": {"user_missing": True}}
_DAYS: Final = re.compile(r"[AEJS]?DATE|MMDDYY|DDMMYY|YYMMDD|%-?t[dcC]|E8601D")
_SECONDS: Final = 60


def _printed(plain: object) -> str:
    if not isinstance(plain, str):
        raise FrameError("expected a text")
    return one_line(plain)


_Text = Annotated[str, _printed]
_Code = float | str


@dataclass(frozen=True)
class _FileVariable:
    """Metadata of a variable, as the other process prints it."""

    name: str
    label: _Text
    type: str
    format: str
    measure: str
    labels: tuple[tuple[_Code, _Text], ...]
    missing: tuple[tuple[_Code, _Code], ...]


def read_labelled(path: Path) -> dict[str, Entry]:
    """Read names, labels, labels of values and codes of missing values: what people declared.

    The storage width of a number is not a declaration: software may choose it by the rows.
    """
    where = repr(str(path))
    if find_spec("pyreadstat") is None:
        raise CodebookError(
            'reading files of SPSS, Stata and SAS needs pyreadstat: pip install "dpmodels[labels]"'
        )
    if not path.is_file():
        raise CodebookError(f"there is no file {where}: check the path and the working folder")
    try:
        variables = conform([_FileVariable], parse(_metadata_json(path)), "")
    except (FrameError, subprocess.SubprocessError, OSError):
        raise CodebookError(
            f"{where} is damaged, or does not match its suffix: write it anew"
        ) from None
    return {variable.name: _entry(variable) for variable in variables}


def _metadata_json(path: Path) -> bytes:
    """Return the metadata that another process prints, as JSON."""
    reader = READERS[path.suffix.lower()]
    script = Path(__file__).with_name("metadata_process.py").read_text("utf-8")
    process = subprocess.run(
        [sys.executable, "-P", "-c", script, str(path), reader, json.dumps(_MORE.get(reader, {}))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=_SECONDS,
        check=True,
    )
    if len(process.stdout) > MOST_BYTES:
        raise FrameError("its metadata are too large")
    return process.stdout


def _entry(variable: _FileVariable) -> Entry:
    text, scale = variable.type == "string", variable.measure == "scale"
    # Labelled letters are Stata's missing values.
    listed = {
        _level(code): label for code, label in variable.labels if text or not isinstance(code, str)
    }
    missing: list[Level] = []
    for lower, upper in variable.missing:
        if isinstance(lower, str) or isinstance(upper, str) or lower == upper:
            missing.append(_level(lower))
        else:
            missing += codes_between(lower, upper, listed)
    if scale:
        listed = {}
    days = _DAYS.match(variable.format) is not None
    return settled(
        variable.name,
        Entry(
            kind="date" if days else "categorical" if text else "numeric",
            levels=tuple(listed),
            labels=tuple(listed.values()),
            missing=tuple(missing),
            label=variable.label,
            ordered=variable.measure == "ordinal",
        ),
    )


def _level(code: Level) -> Level:
    is_integer = isinstance(code, float) and code.is_integer()
    level: Level = int(code) if is_integer else code
    return level
