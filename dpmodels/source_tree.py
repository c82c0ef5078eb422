"""Modules of the source tree that are not installed with the package."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

from dpmodels.errors import NotAvailable

ROOT: Final = Path(__file__).parents[1]


def load_source(name: str, path: str, content: str) -> ModuleType:
    """Import a module, or the package of a folder, from a path below the root of the source tree.

    `content` names it in the NotAvailable that is raised where the path does not exist, or where
    the package does not stand beside its setup.cfg: no module of another package is imported.
    """
    if name not in sys.modules:
        source = ROOT / path
        folders = [str(source)] if source.is_dir() else None
        file = source / "__init__.py" if folders else source
        spec = spec_from_file_location(name, file, submodule_search_locations=folders)
        exists = file.is_file() and (ROOT / "setup.cfg").is_file()
        if not exists or spec is None or spec.loader is None:
            raise NotAvailable(
                f"{content} are part of the source tree, {path}, and are not installed with the "
                "package: run this in a copy of the source, with the package installed by "
                'pip install -e ".[test]"'
            )
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
