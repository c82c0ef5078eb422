"""Reading one chunk while the one before is worked on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from dpmodels.frames.protocol import Chunk


def prefetch(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Pass chunks on in their order, the next of them read by a thread meanwhile.

    Reading has to leave other threads alone, as decoding a file does. Two chunks are in memory at a
    time; what reading raises comes where the chunk would have come.
    """
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk
