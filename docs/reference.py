"""Pages of the reference that are made of the package's own tables."""

import inspect
from importlib import import_module

from dpmodels.mechanisms.tables import TABLES
from dpmodels.models.release import REPORTS
from dpmodels.results.base import Printed, Result, report_of
from dpmodels.verbs import verb_names

KINDS = {name: list(dict.fromkeys(table.values())) for name, table in TABLES.items()}
MECHANISMS = {kind.__module__ for table in KINDS.values() for kind in table}
# What the mechanisms of a table release, in the order of the page; further tables come last.
RELEASED = {
    "COVARIANCE": "Components and covariances, by moments of all variables",
    "SUBSPACE": "Components, by directions only",
    "REGRESSION": "Linear regressions",
    "COEFFICIENTS": "Logistic and other generalised linear models, and classifiers",
    "RATES": "Poisson regressions",
    "COUNTS": "Counts by cell",
    "ORDERED": "Counts of ordered cells: fine histograms and series",
    "PLANE": "Counts in a plane",
    "MARGINS": "Margins of one table",
    "RESPONSES": "Counts of randomised answers",
    "MEASURED": "Means and variances by group",
    "MEANS": "The mean of all rows",
    "QUANTILES": "Quantiles",
    "BOUNDS": "Bounds of variables",
    "LEVELS": "Levels that are not declared",
    "SELECTION": "Selection of candidates, by name",
    "SCREENING": "Columns associated with a response",
    "CHAINS": "States of a series",
}


def further_verbs(page: str) -> str:
    """Add to the page of everything public the verbs that stand under no task."""
    names = [f"dp_{name}" for name in verb_names() if f"   dp_{name}\n" not in page]
    here = ".. currentmodule:: dpmodels\n.. autosummary::"
    more = listed(names, "Further verbs").replace(".. autosummary::", here)
    return f"{page}\n## Further verbs\n\n{more}" if names else page


def listed(names: list[str], caption: str) -> str:
    """Names with the first line of their docstrings, each with a page of its own."""
    options = [":toctree: api", f":caption: {caption}", ":nosignatures:"]
    lines = "\n".join(f"   {line}" for line in [*options, "", *names])
    return f"```{{eval-rst}}\n.. autosummary::\n{lines}\n```\n"


def places(kinds: list[type]) -> list[str]:
    """Where classes are imported from; the page shows their names alone."""
    return [f"~{kind.__module__}.{kind.__qualname__}" for kind in kinds]


def printed(*, saved: bool) -> list[type]:
    """Return what prints as a table, by name: what can be saved, or what cannot."""
    for module in REPORTS:
        import_module(f"dpmodels.reports.{module}")
    kinds: list[type] = [Printed]
    for kind in kinds:
        kinds += [below for below in kind.__subclasses__() if below not in kinds]
    complete = [
        kind
        for kind in kinds
        if kind.__module__.startswith("dpmodels.")
        and (kind in report_of.registry or not kind.__subclasses__())
        and issubclass(kind, Result) is saved
    ]
    return sorted(complete, key=lambda kind: kind.__qualname__)


def results() -> str:
    """Write the page of results."""
    return "\n".join(
        [
            "# Results\n",
            "What verbs return: released values and public facts, never rows. Every result prints",
            "a table, by `summary()`. Results of a release also have `tidy()` and `to_dataset()`,",
            "with the same columns for every result, `glance()`, `noise_int()`, `conf_int()` and",
            "`plot()`.\n",
            "## Results of a release\n",
            "`save()` writes them to a file, and `dp.load` reads them again.\n",
            listed(places(printed(saved=True)), "Results of a release"),
            "## Computed from results or from public facts\n",
            listed(places(printed(saved=False)), "Computed from results"),
        ]
    )


def mechanism_table(kinds: list[type]) -> str:
    """List the mechanisms of a table: what selects them, what they do, and their guarantee."""
    lines = ["| `mechanism=` | what it releases | guarantee |", "|---|---|---|"]
    for kind in kinds:
        info = kind.info  # type: ignore[attr-defined]
        summary = inspect.getdoc(kind).partition("\n")[0].replace("``", "`")
        page = f"api/{kind.__module__}.rst"
        lines.append(f"| [`{info.name}`]({page}) | {summary} | {info.theorem} |")
    return "\n".join(lines) + "\n"


def mechanism_list() -> str:
    """Write the page of mechanisms, by the tables that name them."""
    parts = [
        "# Mechanisms\n",
        "Mechanisms add the noise: nothing else in the package makes a private value public. Verbs",
        'take one by name, `mechanism="gauss"`, or as an instance with options,',
        "`mechanism=dp.mechanisms.Gauss()`. The page of each has its theorem, sensitivity, noise,",
        "numerics and source.\n",
    ]
    seen: set[str] = set()
    for name in sorted(KINDS, key=[*RELEASED, *KINDS].index):
        title = RELEASED.get(name, name)
        modules = dict.fromkeys(kind.__module__ for kind in KINDS[name])
        new = [f"~{module}" for module in modules if module not in seen]
        seen.update(modules)
        parts += [f"## {title}\n", f"Names in `dp.mechanisms.{name}`:\n"]
        parts += [mechanism_table(KINDS[name])]
        # Makes the pages that the table links to, and their place in the sidebar.
        parts += [":::{container} pages-only\n", listed(new, title), ":::\n"] if new else []
    parts += [
        "## A mechanism of your own\n",
        "Verbs that release moments accept a registered class; see `CONTRIBUTING.md`.\n",
        listed(
            [
                "~dpmodels.mechanisms.user_supplied.register",
                "~dpmodels.mechanisms.user_supplied.check",
                "~dpmodels.mechanisms.protocol.MomentMechanism",
            ],
            "A mechanism of your own",
        ),
    ]
    return "\n".join(parts)
