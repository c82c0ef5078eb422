"""Reading one chunk while the one before is worked on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from dpmodels.frames.protocol import Chunk


def ahead(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Pass chunks on in their order, the next of them read by a thread meanwhile.

    Parameters
    ----------
    chunks : iterator of mapping of str to ndarray
        Whose reading leaves other threads alone, as decoding a file does.

    Yields
    ------
    mapping of str to ndarray
        Each chunk, unchanged. Two are in memory at a time. What reading raises
        comes where the chunk would have come.

    Examples
    --------
    >>> from dpmodels.frames import open_rows
    >>> chunks = open_rows({"x": [1, 2, 3]}).chunks(("x",), 2)
    >>> [len(chunk["x"]) for chunk in ahead(chunks)]
    [2, 1]
    """
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk
