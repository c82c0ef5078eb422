"""``connect``: the tables of a gateway, as sessions whose rows are elsewhere."""

from __future__ import annotations

import json
import ssl
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import pandas as pd

from dpmodels import errors
from dpmodels.arguments import checked_keywords, text
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, DPModelsError, FrameError, GatewayError
from dpmodels.external_files import conform, parse
from dpmodels.gateway.calls import PublicTable, written
from dpmodels.models.load import load
from dpmodels.privacy import ZCDP, ApproxDP, Ledger, PureDP, adjacency
from dpmodels.sessions.call import Call, VerbMethods
from dpmodels.typing import Plain

if TYPE_CHECKING:
    from dpmodels.privacy import Guarantee

_LOCAL: Final = ("127.0.0.1", "localhost", "::1")
_MOST_BYTES: Final = 2**30
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0  # Seconds between two looks at a job
_WAITING: Final = ("waiting", "held")
_BAR: Final = "answer in {remaining} |{bar:30}|"


@checked_keywords("dp.connect")
def connect(url: str, *, token: str, cafile: str | None = None, patience: float = 60.0) -> Gateway:
    """Connect to a gateway, which answers calls on tables whose rows nobody sees.

    Parameters
    ----------
    url : str
        Such as ``"https://gate.office.example"``; ``http`` only on this machine.
    token : str
        From the curator of the gateway.
    cafile : path, optional
        A certificate authority, instead of those of the system.
    patience : float, default 60.0
        Seconds for which a lost connection is tried again. A request that is sent twice is one
        job, and charged once.

    Returns
    -------
    Gateway
        ``connect(url, token=token).table("visits")`` is a session.

    Raises
    ------
    ArgumentError
        If the address would send the token unencrypted.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.connect("http://127.0.0.1:8417", token="0123.secret")
    <Gateway http://127.0.0.1:8417>
    """
    parts = urlsplit(text("url", url, 'an address such as "https://gate.example"'))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ArgumentError(f"url={url[:80]!r}: expected an address such as https://gate.example")
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        raise ArgumentError(
            "http would send the token unencrypted: write https://, or connect to 127.0.0.1"
        )
    text("token", token, "the token from the curator")
    context = ssl.create_default_context(cafile=cafile) if parts.scheme == "https" else None
    return Gateway(url.rstrip("/"), token, context, patience)


@dataclass(frozen=True, repr=False)
class Gateway:
    """A connection to a gateway; every request is sent by itself.

    Made by :func:`dpmodels.gateway.client.connect`.
    """

    url: str
    token: str = field(repr=False)
    context: ssl.SSLContext | None = None
    patience: float = 60.0

    def __repr__(self) -> str:
        return f"<Gateway {self.url}>"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that are open to the holder of the token."""
        return tuple(self.get("/v1/tables")["tables"])

    def table(self, name: str) -> RemoteTable:
        """Return a table as a session."""
        return RemoteTable(self, name)

    def job(self, identifier: str) -> RemoteJob:
        """Return a job that was accepted earlier."""
        return RemoteJob(self, identifier)

    def get(self, path: str) -> Plain:
        """Return the plain values at a path."""
        return parse(self.send("GET", path))

    def post(self, path: str, content: object) -> Plain:
        """Send plain values, and return those of the answer."""
        return parse(self.send("POST", path, json.dumps(content).encode()))

    def send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send a request, again while the connection is lost; typed errors of the gateway."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = Request(self.url + path, body, headers, method=method)
        opener = build_opener(_NoRedirection, HTTPSHandler(context=self.context))
        deadline, wait = time.monotonic() + self.patience, _FIRST_WAIT
        while True:
            try:
                with opener.open(request, timeout=60) as answer:
                    content: bytes = answer.read(_MOST_BYTES)
                    return content
            except HTTPError as error:
                refused = _typed(error)
                raise refused from None
            except (URLError, OSError, HTTPException) as error:
                if time.monotonic() >= deadline:
                    raise GatewayError(
                        f"{self.url} cannot be reached ({type(error).__name__}): try again. A job "
                        "that was accepted continues"
                    ) from None
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)


class _NoRedirection(HTTPRedirectHandler):
    """Follows no redirection, which would take the token to another address."""

    def redirect_request(self, *_: object) -> None:
        return None


def _typed(error: HTTPError) -> DPModelsError:
    try:
        plain = conform({"error": str, "message": str}, parse(error.read(_MOST_BYTES)), "answer")
    except FrameError:
        return GatewayError(f"the gateway answered with status {error.code} and no reason")
    return _named(plain["error"], plain["message"])


def _named(name: str, message: str) -> DPModelsError:
    kind = getattr(errors, name, GatewayError)
    is_error = isinstance(kind, type) and issubclass(kind, DPModelsError)
    # An AttributeError would make Python look for a verb of the table.
    is_error = is_error and not issubclass(kind, AttributeError)
    return kind(message) if is_error else GatewayError(message)


@dataclass(frozen=True)
class RemoteJob:
    """A request that a gateway accepted; it continues if the connection is lost."""

    gateway: Gateway = field(repr=False)
    id: str

    @property
    def state(self) -> str:
        """One of "held" (for approval), "waiting", "answered", "refused" and "failed"."""
        return str(self._described()["state"])

    def result(self, timeout: float = 3600.0) -> Any:
        """Wait for the result; LedgerError if the job was refused or has no answer.

        Parameters
        ----------
        timeout : float, default 3600.0
            Seconds; afterwards a GatewayError, and the job continues.
        """
        from tqdm.auto import tqdm

        described, deadline, wait = self._described(), time.monotonic() + timeout, _FIRST_WAIT
        seconds = described.get("seconds_left", 0.0)
        with tqdm(
            total=seconds, unit="s", leave=False, bar_format=_BAR, disable=seconds < 1
        ) as bar:
            while described["state"] in _WAITING:
                if time.monotonic() >= deadline:
                    raise GatewayError(
                        f"the job has no answer after {timeout:g} seconds; it continues, and "
                        f"gateway.job({self.id!r}).result() waits for it"
                    )
                left = described.get("seconds_left", 0.0)
                bar.update(max(seconds - left - bar.n, 0.0))
                time.sleep(wait)
                wait, described = min(2 * wait, _LONGEST_WAIT), self._described()
        if described["state"] != "answered":
            error = described.get("error", {})
            refused = _named(str(error.get("error")), str(error.get("message")))
            raise refused
        content = self.gateway.send("GET", f"/v1/jobs/{quote(self.id, safe='')}/answer")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "answer.nc"
            path.write_bytes(content)
            return load(path)

    def _described(self) -> Mapping[str, Plain]:
        return dict(self.gateway.get(f"/v1/jobs/{quote(self.id, safe='')}"))


class RemoteTable(VerbMethods):
    """A table of a gateway: a session whose verbs run there.

    Every verb is a method, as of :class:`dp.session`, and returns the same results. A wrong formula
    is refused here, before anything is sent. The gateway charges the purse of the token's holder;
    the same call twice is answered by the same release and charged once.

    Parameters
    ----------
    gateway : Gateway
        The connection.
    name : str
        The table.
    """

    def __init__(self, gateway: Gateway, name: str) -> None:
        self._gateway, self._path = gateway, f"/v1/tables/{quote(name, safe='')}"
        self.name = name
        self._fits: list[object] = []
        self._facts: Mapping[str, Plain] = gateway.get(f"{self._path}/codebook")

    @cached_property
    def _public(self) -> PublicTable:
        relation, n_rows = adjacency(self._facts["adjacency"]), self._facts["n_rows"]
        return PublicTable(self.name, self.codebook, relation, n_rows)

    @cached_property
    def codebook(self) -> Codebook:
        """Public bounds and levels of the variables."""
        return Codebook.from_dict(self._facts["codebook"])

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None where it is private or not known."""
        return self._public.n_rows

    @property
    def guarantee(self) -> Guarantee:
        """The budget of the purse."""
        kind = ApproxDP | ZCDP | PureDP
        guarantee: Guarantee = conform(kind, self._facts["guarantee"], "guarantee")
        return guarantee

    @property
    def spent(self) -> str:
        """What all charges to the purse come to."""
        return str(self._ledger()["spent"])

    @property
    def left(self) -> str:
        """What is left in the purse; other analysts may have spent the table's total."""
        return str(self._ledger()["left"])

    def register(self) -> pd.DataFrame:
        """Return the charges to the purse, one per row."""
        return pd.DataFrame(self._ledger()["charges"])

    def simulated(self) -> pd.DataFrame:
        """Return 1,000 rows simulated from the codebook, to try code on."""
        return pd.DataFrame(self._gateway.get(f"{self._path}/simulated"))

    def plan(self, calls: Iterable[Call | tuple[object, ...]]) -> pd.DataFrame:
        """Price calls, one after another: nothing is charged, and no table is opened.

        Parameters
        ----------
        calls : iterable
            Each ``table.call.lm("y ~ x", eps=0.2)`` or ``("lm", "y ~ x", dict(eps=0.2))``.

        Returns
        -------
        DataFrame
            A row for each call, as ``session.plan(calls).table`` without ``n=``.
        """
        sent = [_sent(self.call.read(call)) for call in calls]
        return pd.DataFrame(self._gateway.post(f"{self._path}/plan", sent)["calls"])

    def submit(self, call: Call | tuple[object, ...]) -> RemoteJob:
        """Send a call and return its job, without waiting for the result."""
        written = self.call.read(call)
        self._public.price(written, Ledger(budget=self.guarantee))
        accepted = self._gateway.post(f"{self._path}/ask", _sent(written))
        return RemoteJob(self._gateway, str(accepted["job"]))

    def _made(self, call: Call) -> object:
        if call.is_free:  # Computed here, from an earlier release
            return self._public.terms.make(call, {}, None)
        return self.submit(call).result()

    def __repr__(self) -> str:
        facts = self._ledger()
        return (
            f"<table {self.name!r} of {self._gateway.url}: {facts['spent']} spent of a purse with "
            f"{facts['purse']}; all analysts together: {facts['table_total']}>"
        )

    def _ledger(self) -> Mapping[str, Plain]:
        return dict(self._gateway.get(f"{self._path}/ledger"))


def _sent(call: Call) -> dict[str, object]:
    options = written(call)  # A server of another version may have other defaults
    budget = options.pop("budget", None)
    if isinstance(budget, ZCDP):
        options["rho"] = budget.rho
    elif isinstance(budget, PureDP | ApproxDP):
        options |= {"eps": budget.eps, "delta": getattr(budget, "delta", 0.0)}
    return {"verb": call.name, "formula": call.formula, "options": options}
