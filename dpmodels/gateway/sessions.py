"""Sessions of browsers, in the memory of the server."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import Final

COOKIE: Final = "dpmodels_gate"
_SECONDS: Final = 8 * 3600.0
_MOST_OF_TOKEN: Final = 20


class Sessions:
    """Cookies of browsers that signed in, each for a token and some hours.

    A restart of the server ends all of them. A token that expires or is revoked ends those that it
    opened, since it is checked again with each request.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._opened: dict[str, tuple[str, float]] = {}

    def open(self, token: str) -> str:
        """Return the cookie of a new session; the token's oldest ends if it has too many."""
        cookie, header = secrets.token_urlsafe(32), f"Bearer {token}"
        opened = [other for other, (sent, _) in self._opened.items() if sent == header]
        for other in opened[: 1 - _MOST_OF_TOKEN]:
            self.close(other)
        self._opened[cookie] = (header, time.monotonic() + _SECONDS)
        return cookie

    def header(self, cookie: str) -> str:
        """Return the header with the token of a session, empty without a session."""
        header, until = self._opened.get(cookie, ("", 0.0))
        return header if time.monotonic() < until else ""

    def close(self, cookie: str) -> None:
        """End a session."""
        self._opened.pop(cookie, None)

    def secret(self, cookie: str) -> str:
        """Return what forms have to send with a cookie, against requests from other pages."""
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()
