"""Faults in the ledger, the simulation, the card and the walls, planted with a monkeypatch."""

import dataclasses
from importlib import import_module
from typing import Any

import pytest

import dpmodels as dp
from dpmodels.frames import to_float
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.covariance import gauss
from dpmodels.models import crossing, pca
from dpmodels.noise import secure, source
from dpmodels.privacy import PureEvent
from dpmodels.statistics import Statistic

PRIVATE = import_module("dpmodels.design.private")
COLUMNS = import_module("dpmodels.design.columns")
PARTIES = import_module("dpmodels.sites.parties")


def the_ledger_is_not_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dp.Ledger, "charge", lambda self, events, **words: None)


def the_ledger_is_charged_after_reading(patch: pytest.MonkeyPatch) -> None:
    bound = crossing.private_design

    def eager(formula, data, codebook, **words):
        design = bound(formula, data, codebook, **words)
        next(design._source.chunks(design.public.variables, 1))
        return design

    patch.setattr(crossing, "private_design", eager)


def the_rows_are_measured_before_the_charge(patch: pytest.MonkeyPatch) -> None:
    """The verb plans, measures, and only then asks the ledger."""
    chosen = crossing.choose

    class Hasty:
        def __init__(self, strategy, design):
            self.strategy, self.design = strategy, design
            self.release = strategy.release

        def plan(self, facts, guarantee):
            plan = self.strategy.plan(facts, guarantee)
            self.statistic = self.strategy.measure(self.design, plan)
            return plan

        def measure(self, design, plan):
            return self.statistic

    bound, made = crossing.private_design, []

    def remembered(*given, **words):
        made.append(bound(*given, **words))
        return made[-1]

    def hasty(*given):
        choice = chosen(*given)
        return choice._replace(strategy=Hasty(choice.strategy, made[-1]))

    patch.setattr(crossing, "private_design", remembered)
    patch.setattr(crossing, "choose", hasty)


def a_stream_is_taken_for_a_table(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PRIVATE.PrivateDesign, "require_passes", lambda self: None)


def the_ledger_charges_what_it_refuses(patch: pytest.MonkeyPatch) -> None:
    charge = dp.Ledger.charge

    def careless(self, events, **words):
        try:
            return charge(self, events, **words)
        except dp.errors.LedgerError:
            charge(self, [PureEvent(1e-9)], **{**words, "adjacency": self.adjacency})
            raise

    patch.setattr(dp.Ledger, "charge", careless)


def the_ledger_forgets_an_event(patch: pytest.MonkeyPatch) -> None:
    charge = dp.Ledger.charge

    def forgetful(self, events, **words):
        return charge(self, tuple(events)[:-1], **words)

    patch.setattr(dp.Ledger, "charge", forgetful)


def the_plan_draws_random_words(patch: pytest.MonkeyPatch) -> None:
    plan = gauss.Gauss.plan

    def drawing(self, facts, guarantee):
        source().words(1)
        return plan(self, facts, guarantee)

    patch.setattr(gauss.Gauss, "plan", drawing)


def the_verb_takes_a_seed(patch: pytest.MonkeyPatch) -> None:
    def seedable(formula, data, *, seed=None, **words):
        return pca.dp_pca(formula, data, **words)

    patch.setattr(dp, "dp_pca", seedable)


def a_simulation_is_not_repeated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PARTIES, "source", secure)


def a_simulation_is_not_stamped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(add_noise, "simulating", lambda: False)


def the_card_has_no_source(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gauss.Gauss, "card", dataclasses.replace(gauss.Gauss.card, source=" "))


def the_docstring_has_no_numerics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gauss, "__doc__", gauss.__doc__.replace("\nNumerics\n", "\n"))


def a_statistic_can_be_copied(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(Statistic, "__reduce__")


def a_design_shows_its_rows(patch: pytest.MonkeyPatch) -> None:
    def shown(self):
        return f"<not hidden: {self._source.frame}>"

    patch.setattr(PRIVATE.PrivateDesign, "__repr__", shown)


def a_result_holds_the_rows(patch: pytest.MonkeyPatch) -> None:
    coder, bound = pca.row_coder, crossing.private_design
    kept: list[Any] = []

    def keeping(formula, data, codebook, **words):
        kept[:] = [data]
        return bound(formula, data, codebook, **words)

    def holding(design):
        code, data = coder(design), kept.pop()
        return lambda public: (code(public), data)[0]

    patch.setattr(crossing, "private_design", keeping)
    patch.setattr(pca, "row_coder", holding)


def a_cell_is_quoted_in_an_error(patch: pytest.MonkeyPatch) -> None:
    def quoting(values):
        for cell in values.tolist():
            try:
                float(cell)
            except ValueError:
                raise dp.errors.FrameError(f"{cell!r} is not a number") from None
        return to_float(values)

    patch.setattr(COLUMNS, "to_float", quoting)
