"""Seeded releases on public rows: what is compared with the stored list, and how."""

from dataclasses import replace
from typing import Any

import numpy as np
from verb_entry import BOOK, Form, people
from verbs import FORMS, forms

import dpmodels as dp

SEEDS = (1, 2, 3)
GOLDEN_BOOK = dp.codebook({**BOOK, "height": (0, 2)})
# Reads answers that respondents randomised themselves, and adds no noise of its own.
NOT_LISTED = ("dp_survey",)
# Axes whose order or sign is open: other processors choose others, whatever the seed.
DELICATE_FORMS = (
    "dp_glm region ~ age + wage family='multinomial'",
    "dp_glm sex ~ age + wage",
    "dp_lm age ~ wage + region",
    "dp_lm age ~ wage + region weights='weight'",
    "dp_lm wage ~ age + region",
    "dp_lm wage ~ age + sex + region vcov='HC'",
)
DELICATE = {f"{form} #{seed}" for form in DELICATE_FORMS for seed in SEEDS}


def cases() -> dict[str, tuple[Form, int]]:
    """List the calls of the table of verbs, each once under every seed."""
    listed: dict[str, Form] = {}
    for form in FORMS:
        if form.verb.name not in NOT_LISTED:
            options = " ".join(f"{name}={form.options[name]!r}" for name in sorted(form.options))
            listed.setdefault(f"{form.verb.name} {form.formula} {options}".strip(), form)
    return {f"{key} #{seed}": (form, seed) for key, form in listed.items() for seed in SEEDS}


def unit_cases() -> dict[str, tuple[Form, int]]:
    """List calls that protect persons, or any rows of one person, under one seed."""
    units = (("persons", {"person": "id"}), ("alike", {"rows": 4}))
    return {
        f"{name}, {listed}": (replace(form, options={**form.options, **options}), SEEDS[0])
        for listed, options in units
        for name, form in forms(listed).items()
        # Needs a delta, which the verb's other forms do not.
        if form.options.get("mechanism") != "residual"
    }


def fit_of(form: Form, seed: int) -> Any:
    """Fit public rows under seeded noise."""
    rows = people(300, seed)
    rows["height"] = np.random.default_rng(seed).uniform(0, 2, 300)
    with dp.simulation(seed=seed), dp.options(clipping=False):
        return form.ask(rows, codebook=GOLDEN_BOOK)
