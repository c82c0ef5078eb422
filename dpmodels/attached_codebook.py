"""Codebooks attached to tables, in the metadata of pandas and Arrow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpmodels.atomic_files import require_target, write_whole
from dpmodels.errors import CodebookError, FrameError
from dpmodels.external_files import parse
from dpmodels.typing import AnyPath

if TYPE_CHECKING:
    import pyarrow as pa

# The key with the version of its format.
KEY: Final = "dpmodels.codebook/1"
_ANY_VERSION: Final = KEY.partition("/")[0] + "/"
# Where pandas writes the attributes of a frame, as JSON.
_OF_PANDAS: Final = b"PANDAS_ATTRS"
MOST_CHARACTERS: Final = 2**24


def attached(declared: Mapping[str, object], data: Any) -> Any:
    """Return the same table with a codebook's plain values attached; no row is copied or read."""
    import narwhals.stable.v2 as nw

    text = json.dumps(declared)
    if nw.dependencies.is_pandas_dataframe(data):
        frame = data.copy(deep=False)
        frame.attrs = {**data.attrs, KEY: text}
        return frame
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        return data.replace_schema_metadata({**(data.schema.metadata or {}), KEY: text})
    raise CodebookError(
        f"a codebook cannot be attached to a table of type {type(data).__name__}, which has no "
        "metadata; attach it to a pandas or pyarrow table, write cb.write_parquet(table, "
        '"rows.parquet"), or set it once by dp.options(codebook=cb)'
    )


def write_parquet(
    declared: Mapping[str, object], data: Any, path: AnyPath, *, overwrite: bool = False
) -> None:
    """Write a table in memory as a Parquet file with a codebook's plain values in its footer."""
    import narwhals.stable.v2 as nw

    target = require_target(path, overwrite=overwrite)
    try:
        from pyarrow import parquet
    except ImportError:
        raise FrameError(
            'writing Parquet files needs pyarrow: pip install "dpmodels[arrow]"'
        ) from None
    try:
        table = nw.from_native(data, eager_only=True).to_arrow()
    except TypeError:
        raise FrameError(
            f"rows of type {type(data).__name__} cannot be written: give a DataFrame of pandas, "
            "polars or pyarrow"
        ) from None
    with_codebook = attached(declared, table)
    # pandas reads this back as the attributes of a frame.
    pandas_attrs = json.dumps({KEY: with_codebook.schema.metadata[KEY.encode()].decode()})
    buffer = BytesIO()
    parquet.write_table(
        with_codebook.replace_schema_metadata(
            {**with_codebook.schema.metadata, _OF_PANDAS: pandas_attrs}
        ),
        buffer,
    )
    write_whole(target, buffer.getvalue(), overwrite=overwrite)


def codebook_of_table(data: object) -> object:
    """Return the plain values attached to a table in memory, None without a codebook.

    CodebookError if they are not JSON, or of another version.
    """
    import narwhals.stable.v2 as nw

    data = nw.to_native(data, pass_through=True)
    if nw.dependencies.is_pandas_dataframe(data):
        return _codebook_entry(data.attrs)
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        return _of_schema(data.schema)
    return None


def codebook_of_file(path: Path) -> object:
    """Return the plain values in the footer of a Parquet file; None without a codebook."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        return None
    try:
        schema = parquet.read_schema(path)
    except (OSError, pa.ArrowException):
        return None
    return _of_schema(schema)


def _of_schema(schema: pa.Schema) -> object:
    metadata = dict(schema.metadata or {})
    pandas_attrs = metadata.pop(_OF_PANDAS, b"{}")
    fields = {name.decode(errors="replace"): text for name, text in metadata.items()}
    plain = _codebook_entry(fields)
    if plain is not None or _ANY_VERSION.encode() not in pandas_attrs:
        return plain
    return _codebook_entry(_parsed(pandas_attrs))


def _codebook_entry(fields: Any) -> object:
    names = [name for name in fields if isinstance(name, str) and name.startswith(_ANY_VERSION)]
    if KEY in names:
        return _parsed(fields[KEY])
    if names:
        raise CodebookError(
            f"the table carries a codebook of another version, {names[0]!r}, and only {KEY!r} is "
            "read: give codebook=, or attach it again"
        )
    return None


def _parsed(text: object) -> object:
    content = text.encode(errors="replace") if isinstance(text, str) else text
    try:
        if not isinstance(content, bytes) or len(content) > MOST_CHARACTERS:
            raise FrameError("it is not text, or too long")
        return parse(content)
    except FrameError as error:
        raise CodebookError(
            f"the codebook attached to the table cannot be read ({error}): give codebook=, "
            "or attach it again"
        ) from None
