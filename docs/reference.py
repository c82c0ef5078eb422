"""Pages of the reference that are made of the package's own tables."""

from dpmodels import mechanisms, models  # noqa: F401  (models registers what is printed)
from dpmodels.results.base import Printed, Result
from dpmodels.verbs import verb_names

TABLES = {
    name: list(dict.fromkeys(table.values()))
    for name, table in vars(mechanisms).items()
    if name.isupper() and isinstance(table, dict)
}
MECHANISMS = {kind.__module__ for table in TABLES.values() for kind in table}


def further_verbs(page: str) -> str:
    """Add to the page of everything public the verbs that stand under no task."""
    names = [f"dp_{name}" for name in verb_names() if f"   dp_{name}\n" not in page]
    here = ".. currentmodule:: dpmodels\n.. autosummary::"
    more = listed(names).replace(".. autosummary::", here)
    return f"{page}\n## Further verbs\n\n{more}" if names else page


def listed(names: list[str]) -> str:
    """Names with the first line of their docstrings, each with a page of its own."""
    lines = "\n".join(f"   {name}" for name in names)
    return f"```{{eval-rst}}\n.. autosummary::\n   :toctree: api\n\n{lines}\n```\n"


def places(kinds: list[type]) -> list[str]:
    """Where classes are imported from."""
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds]


def printed(*, saved: bool) -> list[type]:
    """Return what prints as a table, by name: what can be saved, or what cannot."""
    found: list[type] = []
    kinds: list[type] = [Printed]
    for kind in kinds:
        below = kind.__subclasses__()
        kinds += below
        own = kind.__module__.startswith("dpmodels.") and not below
        found += [kind] if own and issubclass(kind, Result) is saved else []
    return sorted(found, key=lambda kind: kind.__qualname__)


def results() -> str:
    """Write the page of results."""
    return "\n".join(
        [
            "# Results\n",
            "What verbs return: released values and public facts, never rows. All print by",
            "`summary()`. Those of a release have `tidy()` and `to_dataset()`, with the same",
            "columns for every result, `glance()`, `noise_int()`, `conf_int()`, `plot()`.\n",
            "## Of a release: saved, and loaded again\n",
            listed(places(printed(saved=True))),
            "## Made of results, or of public facts alone\n",
            listed(places(printed(saved=False))),
        ]
    )


def mechanism_list() -> str:
    """Write the page of mechanisms, by the tables that name them."""
    parts = [
        "# Mechanisms\n",
        "The only step from private to released. Every mechanism is a strategy with an `info`,",
        "`plan`, `measure` and `release`; its page has theorem, sensitivity, noise, numerics and",
        "source. Verbs take one by name, `mechanism=`, or as an instance with options.\n",
    ]
    seen: set[str] = set()
    for name, table in TABLES.items():
        modules = list(dict.fromkeys(kind.__module__ for kind in table))
        cards = [f"* `{kind.info.name}`: {kind.info.theorem}." for kind in table]
        new = [module for module in modules if module not in seen]
        seen.update(new)
        parts += [f"## `dp.mechanisms.{name}`\n", *cards, ""]
        parts += [listed(new)] if new else []
    parts += [
        "## A mechanism of your own\n",
        "A registered class is taken by the verbs of moments; see `CONTRIBUTING.md`.\n",
        listed(
            [
                "dpmodels.mechanisms.user_supplied.register",
                "dpmodels.mechanisms.user_supplied.check",
                "dpmodels.mechanisms.protocol.MomentMechanism",
            ]
        ),
    ]
    return "\n".join(parts)
