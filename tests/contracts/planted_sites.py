"""Faults between sites, each planted with a monkeypatch."""

from importlib import import_module
from itertools import count

import pytest

import dpmodels as dp
from dpmodels.design import PrivateDesign
from dpmodels.noise import seeded
from dpmodels.sites import Parties, full, summing
from dpmodels.sites.protocol import Payload

# The package's re-export hides the module of the same name.
PROTOCOLS = tuple(import_module(f"dpmodels.sites.{name}") for name in ("cape", "secure_sum"))


def masks_do_not_cancel(patch: pytest.MonkeyPatch) -> None:
    """Both sites of a pair add what one of them should take off."""
    for module in PROTOCOLS:
        patch.setattr(
            module, "pair_masks", lambda place, others, mask: [mask(one) for one in others]
        )


def a_site_adds_no_noise(patch: pytest.MonkeyPatch) -> None:
    """One of every four."""
    for module in (summing, full):
        own, turn = module.draw, count()

        def drawn(scales, entropy, own=own, turn=turn):
            noise = own(scales, entropy)
            return noise if next(turn) % 4 else 0 * noise

        patch.setattr(module, "draw", drawn)


def all_sites_draw_the_same_noise(patch: pytest.MonkeyPatch) -> None:
    for module in (summing, full):
        own = module.draw
        patch.setattr(module, "draw", lambda scales, entropy, own=own: own(scales, seeded(7)))


def the_noise_is_shared_by_those_who_tell(patch: pytest.MonkeyPatch) -> None:
    """Each adds the planned variance over S, where one of S takes its own off again."""
    for module in PROTOCOLS:
        own = module.noise_share
        patch.setattr(module, "noise_share", lambda honest, *more, own=own: own(honest + 1, *more))


def the_planned_noise_is_stated_for_all(patch: pytest.MonkeyPatch) -> None:
    for module in PROTOCOLS:
        own = module.summed
        patch.setattr(module, "summed", lambda *given, own=own: own(*given[:-1], 1.0))


def a_site_is_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """The last one, in every protocol."""
    own = Parties.release

    class Doubling:
        def __init__(self, protocol):
            self.protocol = protocol

        def release(self, strategy, statistics, *more):
            doubled = (*statistics[:-1], statistics[-1] + statistics[-1])
            return self.protocol.release(strategy, doubled, *more)

    def release(self, *given):
        return own(Parties(self.names, self.data, Doubling(self.protocol)), *given)

    patch.setattr(Parties, "release", release)


def a_sum_is_read_modulo_less(patch: pytest.MonkeyPatch) -> None:
    """As if 32 bits were enough for it."""
    own = summing.from_words

    def narrow(reduced):
        return (own(reduced) + 2**31) % 2**32 - 2**31

    patch.setattr(summing, "from_words", narrow)


def each_site_is_charged(patch: pytest.MonkeyPatch) -> None:
    """As if disjoint rows did not compose in parallel."""
    own = dp.Ledger.charge

    def often(self, events, **words):
        return own(self, tuple(events) * 4, **words)

    patch.setattr(dp.Ledger, "charge", often)


def rows_are_read_where_sites_are_bound(patch: pytest.MonkeyPatch) -> None:
    own = Parties.bind

    def eager(self, binding):
        bound = own(self, binding)
        for one in bound:
            if isinstance(one, PrivateDesign):
                next(one._rows._source.chunks(one.public.variables, 1))
        return bound

    patch.setattr(Parties, "bind", eager)


def parties_show_their_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Parties, "__repr__", lambda self: f"<Parties: {self.data}>")


def integers_of_a_site_can_be_copied(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(Payload, "__reduce__")
