"""The gallery: every script of ``docs/gallery`` is run, and has a page with what it drew."""

import ast
import contextlib
import io
import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

DPI = 144
TABLE = Path(__file__).with_name("health_insurance.py")
IMPORTED = "from health_insurance import book, rows\n\nimport dpmodels as dp\n"
HEAD = """# Gallery

Each picture shows the noise of what it draws. All are drawn from private releases or public facts
alone, by the script on the picture's page when this site was built. The rows are those of a public
table that statsmodels ships, the RAND Health Insurance Experiment: visits to a doctor under free
care and under cost sharing.

```{toctree}
:hidden:
:glob:

gallery/*
```

"""


def drawn(script: Path, folder: Path) -> tuple[list[Path], str]:
    """Run a script; return the pictures that it left open, as files, and what it printed."""
    printed = io.StringIO()
    with mpl.rc_context(), contextlib.redirect_stdout(printed):
        runpy.run_path(str(script), run_name="__main__")
        files = []
        for number in plt.get_fignums():
            files.append(folder / f"{script.stem}-{number}.png")
            plt.figure(number).savefig(files[-1], dpi=DPI, bbox_inches="tight")
        plt.close("all")
    return files, printed.getvalue()


def page(script: Path, folder: Path) -> str:
    """One script as a page: its words, its picture, its code; and its card for the overview."""
    text = script.read_text("utf-8")
    title, _, words = (ast.get_docstring(ast.parse(text)) or script.stem).partition("\n")
    title = title.rstrip(".")
    code = text.split('"""', 2)[-1].strip() if text.startswith('"""') else text.strip()
    code = code.replace(IMPORTED, TABLE.read_text("utf-8").split('"""', 2)[-1].lstrip())
    files, printed = drawn(script, folder)
    images = [f"![{title}]({file.name})\n" for file in files]
    shown = [f"```text\n{printed.rstrip()}\n```\n"] if printed.strip() else []
    body = [f"# {title}\n", words.strip() + "\n", *images, f"```python\n{code}\n```\n", *shown]
    (folder / f"{script.stem}.md").write_text("\n".join(body), encoding="utf-8")
    if not files:
        raise SystemExit(f"{script} leaves no picture open")
    return f"## [{title}](gallery/{script.stem}.md)\n\n![{title}](gallery/{files[0].name})\n"


def gallery(scripts: Path, pages: Path) -> None:
    """Write the pages of the gallery and their overview."""
    mpl.use("Agg")
    folder = pages / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    cards = [page(script, folder) for script in sorted(scripts.glob("*.py"))]
    (pages / "gallery.md").write_text(HEAD + "\n".join(cards), encoding="utf-8")
