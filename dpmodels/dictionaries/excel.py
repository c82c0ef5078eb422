"""Data dictionaries in the first sheet of an Excel file."""

from __future__ import annotations

import warnings
from collections import deque
from io import BytesIO
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from dpmodels.codebook import MOST_BYTES
from dpmodels.dictionaries.entry import Entry
from dpmodels.dictionaries.table import MOST_LINES, entries_of
from dpmodels.dictionaries.xml import elements
from dpmodels.errors import CodebookError
from dpmodels.outside import read_bytes

_MOST_COLUMNS: Final = 200


def read_excel(path: Path) -> dict[str, Entry]:
    """Read a dictionary; the parts of the file are held against limits before they are read."""
    where = repr(str(path))
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise CodebookError(
            'reading Excel files needs openpyxl: pip install "dpmodels[labels]"'
        ) from None
    content = read_bytes(path, MOST_BYTES)
    _require_plain(content, where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = load_workbook(BytesIO(content), read_only=True, data_only=True)
            sheet = book.worksheets[0]
            lines = list(
                sheet.iter_rows(max_row=MOST_LINES, max_col=_MOST_COLUMNS, values_only=True)
            )
    except Exception:
        raise CodebookError(f"{where} is damaged: save it anew, as .xlsx or as CSV") from None
    return entries_of(lines, where)


def _require_plain(content: bytes, where: str) -> None:
    """Refuse what is no archive, unpacks to too much or declares entities."""
    try:
        with ZipFile(BytesIO(content)) as archive:
            size = sum(part.file_size for part in archive.infolist())
            if size > 8 * MOST_BYTES:
                raise CodebookError(f"{where} unpacks to more than {8 * MOST_BYTES:,} bytes")
            for part in archive.namelist():
                if part.endswith((".xml", ".rels")):
                    deque(elements(archive.read(part), "", where), maxlen=0)
    except CodebookError:
        raise
    except Exception:
        raise CodebookError(f"{where} is no Excel file: save it as .xlsx or as CSV") from None
