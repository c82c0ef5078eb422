"""The table of verbs: how each is asked, its exact answer, and what it can do.

A new verb is one new entry, in the file of its kind: `verbs_models.py`, `verbs_descriptions.py`
or `verbs_discoveries.py`. Every list of verbs in the tests is derived from here.
"""

from dataclasses import replace

import verbs_descriptions
import verbs_discoveries
import verbs_models
from verb_entry import Form, Verb

VERBS = (*verbs_models.VERBS, *verbs_descriptions.VERBS, *verbs_discoveries.VERBS)


def _forms(entry: Verb) -> tuple[Form, ...]:
    """List the forms of an entry: its first formula, in every list of all verbs, if it has none."""
    tests = "stored" if entry.suffix else "stored forged labelled planned"
    if entry.protocols and not entry.suffix:
        tests += " sites"
    plain = Form(entry.formulas[0], tests, entry.options[0])
    return tuple(replace(form, verb=entry) for form in entry.forms or (plain,))


FORMS = tuple(form for entry in VERBS for form in _forms(entry))


def forms(test: str) -> dict[str, Form]:
    """List the forms that stand in a list of tests, by what they are called."""
    return {form.id: form for form in FORMS if test in form.tests.split()}
