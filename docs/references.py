"""References of docstrings, which say ``dp.codebook`` or ``PCAResult.cov``, found on the site.

What names an object of the package that has no page, such as a function behind the wall, is shown
without a link. What names nothing at all is a warning, and so an error.
"""

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode


def documented(env: BuildEnvironment, name: str) -> str | None:
    """Find the documented object whose name ends so, the shortest of several."""
    objects = env.domains.python_domain.objects
    found = [one for one in objects if one == name or one.endswith(f".{name}")]
    return min(found, key=len) if found else None


def exists(name: str) -> bool:
    """Whether a dotted name is a module of the package, or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


@cache
def result_files() -> tuple[str, ...]:
    """Name the modules of results, which verbs import where a result is made."""
    folder = Path(importlib.import_module("dpmodels.results").__file__ or "").parent
    return tuple(f"dpmodels.results.{path.stem}" for path in sorted(folder.glob("[a-z]*.py")))


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, words: nodes.Element
) -> nodes.Element | None:
    """Link to where the object is documented, under whatever name it was given."""
    if node.get("refdomain") != "py":
        return None
    target = re.sub(r"^(dp|dpmodels)\.", "", node["reftarget"]).replace("session.", "Session.")
    name = documented(env, target)
    if name is None:
        above = ("dpmodels", node.get("py:module"), *result_files())
        inside = (node["reftarget"], *(f"{module}.{target}" for module in above))
        return words if any(map(exists, inside)) else None
    entry = env.domains.python_domain.objects[name]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, words, name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen for references that Sphinx does not find by itself."""
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
