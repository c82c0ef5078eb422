"""Seeded releases on public rows: what is compared with the stored list, and how."""

from typing import Any

import numpy as np
from verb_entry import BOOK, Form, people
from verbs import FORMS

import dpmodels as dp

SEEDS = (1, 2, 3)
GOLDEN_BOOK = dp.codebook({**BOOK, "height": (0, 2)})
# Reads answers that respondents randomised themselves, and adds no noise of its own.
NOT_LISTED = ("dp_survey",)


def cases() -> dict[str, tuple[Form, int]]:
    """List the calls of the table of verbs, each once under every seed."""
    forms: dict[str, Form] = {}
    for form in FORMS:
        if form.verb.name not in NOT_LISTED:
            options = " ".join(f"{name}={form.options[name]!r}" for name in sorted(form.options))
            forms.setdefault(f"{form.verb.name} {form.formula} {options}".strip(), form)
    return {f"{key} #{seed}": (form, seed) for key, form in forms.items() for seed in SEEDS}


def fit_of(form: Form, seed: int) -> Any:
    """Fit public rows under seeded noise."""
    rows = people(300, seed)
    rows["height"] = np.random.default_rng(seed).uniform(0, 2, 300)
    with dp.simulation(seed=seed), dp.options(clipping=False):
        return form.ask(rows, codebook=GOLDEN_BOOK)
