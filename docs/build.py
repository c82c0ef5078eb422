"""Build the documentation site: ``python docs/build.py``, into ``build/site``.

Pages are gathered into ``build/pages``: those of ``docs/`` at the top, ``vignettes/`` below, and
the tables of results and mechanisms as the package has them. Links between files of the tree lead
to pages where there are some. Warnings are errors. With ``DPMODELS_REDUCED=1`` only a few notebooks
are executed.
"""

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# This tree's package and this interpreter, here and in the notebooks, shell lines among them.
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
own = str(Path(sys.executable).parent)
os.environ["PATH"] = os.pathsep.join([own, os.environ.get("PATH", "")])

from reference import MECHANISMS, further_verbs, mechanism_list, results  # noqa: E402
from scripts import gallery  # noqa: E402
from sphinx.cmd.build import main  # noqa: E402

PAGES = ROOT / "build" / "pages"
TOP = ("NEWS.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
LINK = re.compile(r"\]\((?!\w+:|#|<)([^)#\s]+)(#[^)\s]*)?\)")


def sources() -> dict[Path, Path]:
    """Each page's file in the tree, and its place among the pages."""
    docs, vignettes = ROOT / "docs", ROOT / "vignettes"
    found = [*docs.glob("*.md"), *(ROOT / name for name in TOP)]
    placed = {path: Path(path.name) for path in found}
    return placed | {path: Path("vignettes", path.name) for path in vignettes.glob("*.md")}


def relinked(path: Path, text: str, placed: dict[Path, Path]) -> str:
    """Links of a page, to where their targets are on the site; words where there is no page."""
    here = placed[path].parent

    def link(match: re.Match[str]) -> str:
        target = (path.parent / match[1]).resolve()
        if target in placed:
            to = placed[target]
        elif target.suffix == ".py" and module(target) in MECHANISMS:
            to = Path("api", f"{module(target)}.rst")
        else:
            return "]" if not target.exists() else f"]({match[1]}{match[2] or ''})"
        return f"]({os.path.relpath(to, here)}{match[2] or ''})"

    return LINK.sub(link, text)


def module(path: Path) -> str:
    """Name of the module in a file of the tree."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def gather() -> None:
    """Write the pages; those that are as they were keep their time."""
    placed = sources()
    shutil.rmtree(PAGES, ignore_errors=True)
    for path, place in placed.items():
        target = PAGES / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(relinked(path, path.read_text("utf-8"), placed), encoding="utf-8")
        shutil.copystat(path, target)
    shutil.copytree(ROOT / "docs" / "static", PAGES / "static")
    (PAGES / "api.md").write_text(further_verbs((PAGES / "api.md").read_text("utf-8")), "utf-8")
    (PAGES / "results.md").write_text(results(), encoding="utf-8")
    (PAGES / "mechanisms.md").write_text(mechanism_list(), encoding="utf-8")
    gallery(ROOT / "docs" / "gallery", PAGES)


if __name__ == "__main__":
    gather()
    strict = ["-W", "--keep-going", "-n", "-q", "-j", "auto", "-b", "html"]
    where = [str(PAGES), str(ROOT / "build" / "site"), "-d", str(ROOT / "build" / "doctrees")]
    sys.exit(main([*strict, "-c", str(ROOT / "docs"), *where, *sys.argv[1:]]))
