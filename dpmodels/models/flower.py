"""``dp.flower``: sites over a network, on Flower.

Flower carries messages between one ServerApp, at the aggregator, and a ClientApp at each site.
:func:`client_app` and :func:`server_app` make the two. They run the protocols of
:func:`~dpmodels.site_release` and :func:`~dpmodels.combine`, and send the same messages.

*Messages.* First the aggregator asks every node for its terms: formula, codebook, options,
guarantee, protocol, session and, where sites have keys, their public keys. Nothing has been read or
charged by then. Only if all sites are present with equal terms, it sends the terms back to each and
asks for its message. A site compares them with its own, reads its rows, charges its ledger, adds
noise and masks, keeps the message in a file and sends a copy. A refusal names the first difference;
of any other error only the class is sent.

*Who sees it.* The aggregator and everyone who runs the SuperLink see what the protocol's aggregator
sees, and the terms. So does everyone on the way, unless Flower runs with TLS, which also tells
sites that the SuperLink is the one they know. Under ``full`` and ``dpdispca`` a message has the
full noise. Under ``cape`` and ``secure_sum`` it has a share of it, and masks cover the rest.

*Keys.* Sites that exchange the cards of :func:`~dpmodels.site_key` themselves, and give them as
``cards=``, need not trust the aggregator with keys. With ``sites=`` the aggregator passes the cards
on and is trusted with that: by replacing them with its own it would read each message without its
masks, with only a share of the noise. An honest but curious aggregator learns nothing from them.

*Once.* The letter's file is the record that a session was answered. While it is there the site
refuses: nothing is charged twice, and the same rows never get fresh noise. Should the aggregator
lose a message, send it the file, for :func:`~dpmodels.combine`. Flower starts a process for each
message: a ledger in memory would hold for this one release, one in a file (``dp.Ledger.open``) adds
up all sessions of a site. Keys need one in a file, which records that the key was used.

*Code.* Flower sends the code of its apps from whoever may start runs to every
site, where it runs with the rights of the SuperNode. Terms that are checked by
code bind only as far as that code is the one agreed on. A site that does not
trust those who may start runs does not let a SuperNode near its rows: it
writes its message with :func:`~dpmodels.site_release` and sends the file.

Set ``FLWR_TELEMETRY_ENABLED=0`` in the environment of all Flower's processes:
otherwise they report their use to Flower's makers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, entry_point, quoted
from dpmodels.external_files import parse

# The package exports this module itself, and finds it by this name in it.
from dpmodels.frames.delimited import CsvMode
from dpmodels.models import flower as flower
from dpmodels.models.site_exchange import exchange_terms, is_exchange
from dpmodels.models.site_files import TERM_PARAMETERS, combine, site_release, state
from dpmodels.models.site_network import REQUESTS, SiteAnswers, ask_sites
from dpmodels.options import ledger_of
from dpmodels.privacy import AdjacencyName, Guarantee, Ledger, resolve_budget
from dpmodels.sites import MessageProtocol
from dpmodels.typing import AnyPath, Option, Plain

if TYPE_CHECKING:
    from flwr.app import Context, Message, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp

_RECORD = "dpmodels"


@entry_point
def client_app(
    formula: str,
    data: object,
    path: AnyPath,
    *,
    site: str,
    session: str,
    protocol: str | MessageProtocol,
    codebook: Codebook,
    verb: str = "pca",
    eps: float | None = None,
    delta: float = 0.0,
    budget: Guarantee | None = None,
    adjacency: AdjacencyName = "replace",
    person: str | Literal[False] | None = None,
    rows: int | Literal["mean"] | None = None,
    subset: str | None = None,
    csv: CsvMode | None = None,
    ledger: Ledger | None = None,
    key: AnyPath | None = None,
    cards: Sequence[AnyPath] = (),
    sites: Sequence[str] = (),
    **options: Option,
) -> ClientApp:
    """Make the app that answers for one site, on terms that the site states here.

    Parameters
    ----------
    formula : str
        As for the verb.
    data : frame, mapping, path or iterable of frames
        This site's rows. Give a path: it is read when all have agreed, and not
        when the app is loaded.
    path : path
        A new file for the message, in a folder of the site that stays; it is
        the record that this session was answered. Or an empty folder, for an exchange of rounds,
        see :func:`~dpmodels.site_release`.
    site, session, protocol, codebook, verb, eps, delta, budget, adjacency
    person, rows, subset, csv, ledger
        As for :func:`~dpmodels.site_release`.
    key : path, optional
        This site's key of :func:`~dpmodels.site_key`, for ``"cape"`` and
        ``"secure_sum"``; it is used up.
    cards : sequence of path
        Public cards of all sites, for the same, exchanged beforehand.
    sites : sequence of str
        Instead of cards: the names of all sites, if the aggregator is trusted to pass on their
        keys.
    **options
        Further options of the verb.

    Returns
    -------
    flwr.clientapp.ClientApp
        To be named as ``clientapp`` in the bundle's ``pyproject.toml``.

    Raises
    ------
    ArgumentError, BudgetError
        If the terms are invalid, or Flower is not installed. Formula, data and keys are checked
        when a question arrives; the answer is then a refusal.

    Examples
    --------
    >>> import dpmodels as dp
    >>> agreed = dict(codebook=dp.codebook(a=(0, 1), b=(0, 1)), eps=1.0, delta=1e-6)
    >>> agreed |= dict(session="trial 7", protocol="full")
    >>> app = dp.flower.client_app(
    ...     "~ a + b", "rows.csv", "trial-7.json", site="A", **agreed
    ... )  # doctest: +SKIP
    """
    _need_flower()
    from flwr.clientapp import ClientApp

    if isinstance(sites, str):
        raise ArgumentError("sites=: expected the names of all sites, such as ['A', 'B']")
    arguments = locals()
    stated: dict[str, Plain] = {name: arguments[name] for name in TERM_PARAMETERS}
    stated["budget"] = resolve_budget(stated.pop("eps"), stated.pop("delta"), budget)
    ledger = ledger_of(ledger)
    _, chosen, terms = state(formula, **stated, options=options, in_rounds=is_exchange(path))
    terms = exchange_terms(terms) if is_exchange(path) else terms
    stated |= {"csv": csv, "ledger": ledger, **options}
    release, keys = partial(site_release, formula, data, path, **stated), (key, tuple(cards))
    answers = SiteAnswers(site, chosen, terms, Path(path), release, *keys, tuple(sites), ledger)
    app = ClientApp()
    for request in REQUESTS:
        app.query(request)(partial(_reply, answers, request))
    return app


def server_app(
    sites: Sequence[str],
    *,
    session: str,
    folder: AnyPath,
    done: Callable[[object], object] | None = None,
    timeout: float = 600.0,
    patience: float = 60.0,
) -> ServerApp:
    """Make the app that asks the sites for their messages and combines them.

    Parameters
    ----------
    sites : sequence of str
        The names of the sites that take part, no more and no fewer.
    session : str
        The name of this release that all sites agree on.
    folder : path
        Where messages are kept; one without any. ``dp.combine`` takes them
        again at any time. An exchange of rounds that was interrupted goes on in its folder.
    done : callable, optional
        Called with what ``dp.combine`` returns, to print or save it.
    timeout : float, default 600
        Seconds until all sites have connected and answered.
    patience : float, default 60
        Of an exchange under ``SecureSum(dropouts=d)``: seconds after which a round ends without at
        most d sites that have not answered. They take part again in the next round.

    Returns
    -------
    flwr.serverapp.ServerApp
        To be named as ``serverapp`` in the bundle's ``pyproject.toml``. It
        fails with a FrameError that names the site if one is missing, refuses,
        states other terms than another, or fails; nothing is combined then.

    Raises
    ------
    ArgumentError
        If sites or session are invalid, or Flower is not installed.

    Examples
    --------
    >>> import dpmodels as dp
    >>> app = dp.flower.server_app(
    ...     ["A", "B"], session="trial 7", folder="messages", done=print
    ... )  # doctest: +SKIP
    """
    _need_flower()
    from flwr.serverapp import ServerApp

    names = () if isinstance(sites, str) else tuple(sites)
    if not names or len(set(names)) < len(names) or not all(map(_is_name, names)):
        raise ArgumentError("sites=: expected the names of all sites, such as ['A', 'B']")
    if not _is_name(session):
        raise ArgumentError(f"session={quoted(session)}: expected a text that is not empty")

    def main(grid: Grid, context: Context) -> None:
        transport = _FlowerTransport(grid)
        fit = combine(ask_sites(transport, names, session, Path(folder), timeout, patience))
        if done is not None:
            done(fit)

    app = ServerApp()
    app.main()(main)
    return app


class _FlowerTransport:
    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._sent: dict[str, int] = {}

    def nodes(self) -> list[int]:
        return list(self._grid.get_node_ids())

    def send(
        self, request: str, contents: Mapping[int, Mapping[str, object]], seconds: float
    ) -> None:
        from flwr.app import Message

        if not contents:
            return
        messages = [
            Message(_record(plain), node, f"query.{request}", ttl=max(seconds, 1.0))
            for node, plain in contents.items()
        ]
        numbers = zip(self._grid.push_messages(messages), contents, strict=False)
        self._sent |= {number: node for number, node in numbers if number}

    def arrived(self) -> list[tuple[int, dict[str, object]]]:
        replies = self._grid.pull_messages(list(self._sent)) if self._sent else ()
        heard = []
        for reply in replies:
            node = self._sent.pop(reply.metadata.reply_to_message_id, None)
            if node is not None:
                heard.append((node, _plain(reply)))
        return heard


def _reply(answers: SiteAnswers, request: str, message: Message, context: Context) -> Message:
    from flwr.app import Message

    return Message(_record(answers.answer(request, _plain(message))), reply_to=message)


def _record(plain: Mapping[str, object]) -> RecordDict:
    from flwr.app import ConfigRecord, RecordDict

    return RecordDict({_RECORD: ConfigRecord({"json": json.dumps(plain)})})


def _plain(message: Message) -> dict[str, object]:
    """Return the content of a message; empty if it is not of dpmodels."""
    if message.has_error():
        return {"failure": message.error.reason or "Flower gave no reason"}
    records = message.content
    try:
        plain = parse(records[_RECORD]["json"].encode())
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}
    return plain if isinstance(plain, dict) else {}


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _need_flower() -> None:
    if find_spec("flwr") is None:
        raise ArgumentError('sites over a network need Flower: pip install "dpmodels[flower]"')
