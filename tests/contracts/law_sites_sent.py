"""What sites hold is shown nowhere; what is asked wrongly is refused early and free of charge."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import law_canary as canary
import numpy as np
import pandas as pd
import pytest
from contract_cases import BOOK, minefield
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from law_arguments import NAN, the_error_is_helpful
from law_secrets import ANSWER, refuses_to_be_copied
from site_cases import SITES, SiteCase, divided

import dpmodels as dp
from dpmodels.errors import ArgumentError, DPModelsError, FrameError
from dpmodels.sites import PROTOCOLS, SENT, Parties
from dpmodels.sites.key_file import KeyShare, PairStream, Participant, public_bytes
from dpmodels.sites.message import SiteMessage
from dpmodels.sites.packing import Payload

Changes = dict[str, Any]


def what_sites_hold_is_not_shown() -> None:
    """Rows, exact integers, and what masks are made of."""
    rows = pd.DataFrame({"age": [ANSWER] * 3})
    cells = np.full(6, ANSWER, dtype=object)
    key = str(ANSWER).encode().ljust(32)
    private = X25519PrivateKey.from_private_bytes(key)
    seat = Participant(("a",), (public_bytes(private),), 0, private)
    letter = SiteMessage({}, "a", None, cells.astype(np.int64).tobytes(), (6,), "words", "1", False)
    stays = (Parties(("a",), (rows,)), Payload(cells, ANSWER), PairStream(key))
    for value in (*stays, KeyShare(1, ANSWER), seat, letter):
        for text in (repr(value), str(value), f"{value}", repr([value]), repr({1: value})):
            for trace in (str(ANSWER), str(key), key.hex()):
                assert trace not in text, f"{type(value).__name__} shows what it holds"
    for value in stays:
        refuses_to_be_copied(value)
        refuses_to_be_copied([value])


def a_joint_fit_tells_no_cell(case: SiteCase) -> None:
    """What every result shows is tried on one table; here is what sites add to it."""
    ledger = dp.Ledger(budget=case.guarantee, adjacency=case.adjacency)

    def said() -> list[str]:
        fit = case.ask(canary.rare(), ledger=ledger)
        return [
            repr(fit),
            repr(fit.release),
            repr(fit.release.shared),
            fit.summary(notes="all").as_page(),
        ]

    text = canary.heard(said)
    assert "Mechanism" in text, text
    canary.tells_nothing(text)
    canary.tells_nothing(repr(ledger))


def a_letter_tells_no_cell(name: str, folder: Path) -> None:
    """Neither the file that a site sends nor any message on the way."""
    words: Changes = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6, "session": "s"}
    # Protocols without keys refuse them: who needs them says so.
    cards = [dp.site_key(site, folder / f"{site}.key") for site in SITES]
    rows = divided(canary.rare())

    def said() -> list[str]:
        files = []
        for site in SITES:
            options = {
                "site": site,
                "protocol": name,
                "key": folder / f"{site}.key",
                "cards": cards,
            }
            options["ledger"] = dp.Ledger.open(folder / f"{site}.ledger", 1.0, 1e-6, new=True)
            path = folder / f"{site}.json"
            try:
                dp.site_release(canary.FORMULA, rows[site], path, **words, **options)
            except ArgumentError:
                options |= {"key": None, "cards": ()}
                dp.site_release(canary.FORMULA, rows[site], path, **words, **options)
            files.append(path)
        written = [file.read_text("utf-8") for file in files]
        return [*written, dp.combine(files).summary(notes="all").as_page()]

    text = canary.heard(said)
    assert "Mechanism" in text, text
    canary.tells_nothing(text)


def no_failure_of_one_site_tells_a_cell(
    case: SiteCase, give: Callable[[Path], Any], at: Path
) -> None:
    """One of the sites has other data than it should; the word of it is the site's name alone."""
    if isinstance(give(at), str):
        return
    odd = divided(canary.rare()) | {case.seated[-1]: give(at)}
    words = {"codebook": BOOK, "protocol": case.protocol} | case.words
    canary.a_failure_tells_no_cell(
        lambda: getattr(dp, case.verb.name)(canary.FORMULA, sites=odd, **words)
    )


MINED = {name: minefield() for name in SITES}
# The word that the message has to name, what is changed, and the type of the error.
BAD: list[tuple[str, Changes, type[DPModelsError]]] = [
    ("protocol=", {"protocol": None}, ArgumentError),
    ("protocol=", {"protocol": "trust me"}, ArgumentError),
    ("protocol=", {"protocol": ""}, ArgumentError),
    ("protocol=", {"protocol": 3}, ArgumentError),
    ("protocol=", {"protocol": dp.sites.SecureSum}, ArgumentError),
    ("protocol=", {"sites": None, "data": minefield()}, ArgumentError),
    ("data", {"data": minefield()}, ArgumentError),
    ("sites", {"sites": None, "protocol": None}, FrameError),
    ("sites=", {"sites": {}}, ArgumentError),
    ("sites=", {"sites": list(MINED.values())}, ArgumentError),
    ("sites=", {"sites": minefield}, ArgumentError),
    ("sites=", {"sites": {1: minefield(), 2: minefield()}}, ArgumentError),
    ("sites=", {"sites": {"": minefield(), "b": minefield()}}, ArgumentError),
    ("'north'", {"sites": MINED | {"north": minefield(("size",))}}, FrameError),
    ("'north'", {"sites": MINED | {"north": None}}, FrameError),
]
# What no field of a protocol can be.
NO_WORDS = (-1, 2.5, NAN, "no such word", True, [1], pd.DataFrame(canary.rare()))


def a_bad_call_on_sites_is_refused_for_free(
    case: SiteCase, argument: str, changes: Changes, kind: type[DPModelsError]
) -> None:
    """Before a row is read, and before the ledger is charged."""
    ledger = dp.Ledger(10, 1e-5)
    words = {"sites": MINED, "protocol": case.protocol, "codebook": BOOK, "ledger": ledger}
    with pytest.raises(kind) as raised:
        getattr(dp, case.verb.name)(case.formula, **(words | case.words | changes))
    the_error_is_helpful(raised.value, argument)
    canary.tells_nothing(str(raised.value))
    assert ledger.entries == (), "a call that is refused was charged"


def bad_words_of_a_protocol_are_refused_for_free(case: SiteCase) -> None:
    for field in dataclasses.fields(case.protocol):
        for word in NO_WORDS:
            changed_protocol = dataclasses.replace(case.protocol, **{field.name: word})
            changes = {"protocol": changed_protocol}
            a_bad_call_on_sites_is_refused_for_free(case, field.name, changes, ArgumentError)


def noise_that_sites_cannot_add_is_refused_for_free(case: SiteCase) -> None:
    """A guarantee without delta asks for Laplace noise: only one who adds it all can give it."""
    ledger = dp.Ledger(10, 1e-5)
    pure = {"budget": None, "eps": 1.0, "mechanism": "auto", "ledger": ledger}
    words = {"sites": MINED, "protocol": case.protocol, "codebook": BOOK, **case.words, **pure}
    if "mechanism" not in case.words:
        del words["mechanism"]
    with pytest.raises(DPModelsError):
        getattr(dp, case.verb.name)(case.formula, **words)
    assert ledger.entries == (), "a call that is refused was charged"


LETTERS = tuple(name for name in PROTOCOLS if name in SENT)
