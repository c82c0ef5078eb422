"""Faults in the ledger, the simulation, the card and the walls, planted with a monkeypatch."""

import dataclasses
from importlib import import_module
from typing import Any

import pytest

import dpmodels as dp
from dpmodels.frames import to_float
from dpmodels.mechanisms import protocol
from dpmodels.mechanisms.covariance import gauss
from dpmodels.models import moments, release
from dpmodels.noise import secure, source
from dpmodels.privacy import PureEvent
from dpmodels.sites import Parties
from dpmodels.statistics import Statistic

PRIVATE = import_module("dpmodels.design.private")
COLUMNS = import_module("dpmodels.design.columns")
PARTIES = import_module("dpmodels.sites.parties")


def the_ledger_is_not_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dp.Ledger, "charge", lambda self, events, **words: None)


def the_ledger_is_charged_after_reading(patch: pytest.MonkeyPatch) -> None:
    original = Parties.bind

    def eager(self, binding):
        bound = original(self, binding)
        next(bound[0].rows.source.chunks(bound[0].public.variables, 1))
        return bound

    patch.setattr(Parties, "bind", eager)


def the_rows_are_measured_before_the_charge(patch: pytest.MonkeyPatch) -> None:
    """The verb plans, measures, and only then asks the ledger."""
    planned = release.planned_with_counts

    def hasty(spec, holders, mechanism, private):
        choice, counting = planned(spec, holders, mechanism, private)
        for rows in private:
            choice.strategy.measure(rows, choice.plan)
        return choice, counting

    patch.setattr(release, "planned_with_counts", hasty)


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
        return moments.dp_pca(formula, data, **words)

    patch.setattr(dp, "dp_pca", seedable)


def a_simulation_is_not_repeated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PARTIES, "source", secure)


def a_simulation_is_not_stamped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(protocol, "simulating", lambda: False)


def the_card_has_no_source(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gauss.Gauss, "info", dataclasses.replace(gauss.Gauss.info, source=" "))


def the_docstring_has_no_numerics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gauss, "__doc__", gauss.__doc__.replace("\nNumerics\n", "\n"))


def a_statistic_can_be_copied(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(Statistic, "__reduce__")


def a_design_shows_its_rows(patch: pytest.MonkeyPatch) -> None:
    def shown(self):
        return f"<not hidden: {self.rows.source.frame}>"

    patch.setattr(PRIVATE.PrivateDesign, "__repr__", shown)


def a_result_holds_the_rows(patch: pytest.MonkeyPatch) -> None:
    coder, bound = moments.row_coder, PRIVATE.PrivateDesign.bind
    values: list[Any] = []

    def keeping(self, data):
        values[:] = [data]
        return bound(self, data)

    def holding(design):
        code, data = coder(design), values.pop()
        return lambda public: (code(public), data)[0]

    patch.setattr(PRIVATE.PrivateDesign, "bind", keeping)
    patch.setattr(moments, "row_coder", holding)


def a_cell_is_quoted_in_an_error(patch: pytest.MonkeyPatch) -> None:
    def quoting(values):
        for cell in values.tolist():
            try:
                float(cell)
            except ValueError:
                raise dp.errors.FrameError(f"{cell!r} is not a number") from None
        return to_float(values)

    patch.setattr(COLUMNS, "to_float", quoting)
