"""Faults between sites, each planted with a monkeypatch."""

from importlib import import_module
from itertools import count

import pytest

import dpmodels as dp
from dpmodels.design import PrivateDesign
from dpmodels.noise import seeded
from dpmodels.sites import Parties, packing, summing
from dpmodels.sites.key_file import PairStream
from dpmodels.sites.packing import Payload

# `cape` reads the functions of `summing`; the package's re-export hides the module `secure_sum`.
PROTOCOLS = (summing, import_module("dpmodels.sites.secure_sum"))


def masks_do_not_cancel(patch: pytest.MonkeyPatch) -> None:
    """Both sites of a pair add what one of them should take off."""
    for module in PROTOCOLS:
        patch.setattr(
            module,
            "pair_masks",
            lambda place, masks, mask: [mask(mask_value) for mask_value in masks],
        )


def a_site_adds_no_noise(patch: pytest.MonkeyPatch) -> None:
    """One of every four."""
    for module in (summing, packing):
        original, turn = module.draw, count()

        def drawn(scales, entropy, draw=original, turn=turn):
            noise = draw(scales, entropy)
            return noise if isinstance(entropy, PairStream) or next(turn) % 4 else 0 * noise

        patch.setattr(module, "draw", drawn)


def all_sites_draw_the_same_noise(patch: pytest.MonkeyPatch) -> None:
    for module in (summing, packing):

        def drawn(scales, entropy, draw=module.draw):
            return draw(scales, entropy if isinstance(entropy, PairStream) else seeded(7))

        patch.setattr(module, "draw", drawn)


def the_noise_is_shared_by_those_who_tell(patch: pytest.MonkeyPatch) -> None:
    """Each adds the planned variance over S, where one of S takes its own off again."""
    for module in PROTOCOLS:
        original = module.noise_share
        patch.setattr(
            module,
            "noise_share",
            lambda honest, *rest, sum_function=original: sum_function(honest + 1, *rest),
        )


def the_planned_noise_is_stated_for_all(patch: pytest.MonkeyPatch) -> None:
    original = summing.unpack
    patch.setattr(summing, "unpack", lambda *arguments: original(*arguments[:-1], 1.0))


def a_site_is_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """The last one, in every protocol."""
    original = Parties.release

    class Doubling:
        def __init__(self, protocol):
            self.protocol = protocol

        def release(self, joint, statistics, entropy):
            doubled = (*statistics[:-1], statistics[-1] + statistics[-1])
            return self.protocol.release(joint, doubled, entropy)

    def release(self, *arguments):
        return original(Parties(self.names, self.data, Doubling(self.protocol)), *arguments)

    patch.setattr(Parties, "release", release)


def a_sum_is_read_modulo_less(patch: pytest.MonkeyPatch) -> None:
    """As if 32 bits were enough for it."""
    original = summing.from_words

    def narrow(reduced):
        return (original(reduced) + 2**31) % 2**32 - 2**31

    patch.setattr(summing, "from_words", narrow)


def each_site_is_charged(patch: pytest.MonkeyPatch) -> None:
    """As if disjoint rows did not compose in parallel."""
    original = dp.Ledger.charge

    def often(self, events, **words):
        return original(self, tuple(events) * 4, **words)

    patch.setattr(dp.Ledger, "charge", often)


def rows_are_read_where_sites_are_bound(patch: pytest.MonkeyPatch) -> None:
    original = Parties.bind

    def eager(self, binding):
        bound = original(self, binding)
        for part in bound:
            if isinstance(part, PrivateDesign):
                next(part.rows.source.chunks(part.public.variables, 1))
        return bound

    patch.setattr(Parties, "bind", eager)


def parties_show_their_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Parties, "__repr__", lambda self: f"<Parties: {self.data}>")


def integers_of_a_site_can_be_copied(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(Payload, "__reduce__")
