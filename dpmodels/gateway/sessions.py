"""Sessions of browsers, in the memory of the server, and the headers of their pages."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from threading import Lock
from typing import Final

COOKIE: Final = "dpmodels_gate"
_SECONDS: Final = 8 * 3600.0
_MOST: Final = 10_000
# Style attributes are of bars in tables, whose lengths the server writes.
PAGE_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'self'; style-src-attr 'unsafe-inline'; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
}


class Sessions:
    """Cookies of browsers that signed in, each for a token and some hours.

    A restart of the server ends all of them. A token that expires or is revoked ends those that it
    opened, since it is checked again with each request.
    """

    def __init__(self) -> None:
        self._key, self._lock = secrets.token_bytes(32), Lock()
        self._opened: dict[str, tuple[str, float]] = {}

    def open(self, token: str) -> str:
        """Return the cookie of a new session; the oldest session ends if there are too many."""
        cookie = secrets.token_urlsafe(32)
        with self._lock:
            if len(self._opened) >= _MOST:
                del self._opened[next(iter(self._opened))]
            self._opened[cookie] = (f"Bearer {token}", time.monotonic() + _SECONDS)
        return cookie

    def header(self, cookie: str) -> str:
        """Return the header with the token of a session, empty without a session."""
        header, until = self._opened.get(cookie, ("", 0.0))
        return header if time.monotonic() < until else ""

    def close(self, cookie: str) -> None:
        """End a session."""
        with self._lock:
            self._opened.pop(cookie, None)

    def secret(self, cookie: str) -> str:
        """Return what forms have to send with a cookie, against requests from other pages."""
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()

    def is_secret(self, cookie: str, sent: str) -> bool:
        """Return whether a form sent the secret of a cookie."""
        return hmac.compare_digest(self.secret(cookie).encode(), sent.encode("utf-8", "replace"))
