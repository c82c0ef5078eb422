"""Few requests of one sender at once, and bodies that arrive in time."""

from __future__ import annotations

from asyncio import Semaphore, timeout
from typing import Final
from weakref import WeakValueDictionary

from starlette.exceptions import HTTPException
from starlette.requests import Request

from dpmodels.gateway.calls import MOST_BYTES

_AT_ONCE: Final = 8  # Of 40 threads
_BODY_SECONDS: Final = 30.0


class Turns:
    """Lets a sender compute a few requests at once, so that others find a free thread."""

    def __init__(self) -> None:
        self._open = WeakValueDictionary[str, Semaphore]()

    def of(self, sender: str) -> Semaphore:
        """Return what a request of a sender acquires before it takes a thread."""
        return self._open.setdefault(sender, Semaphore(_AT_ONCE))


async def limited_body(request: Request) -> bytes | None:
    """Read a body of limited size, None if it is longer.

    Status 408 if it takes too long, and 400 if a proxy may see another end of it.
    """
    if {"content-length", "transfer-encoding"} <= set(request.headers):
        raise HTTPException(400, "the body has two lengths", {"Connection": "close"})
    body = b""
    try:
        async with timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    return None
    except TimeoutError:
        raise HTTPException(408, f"the body took more than {_BODY_SECONDS:g} seconds") from None
    return body
