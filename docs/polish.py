"""What Sphinx and its theme leave for readers to stumble over, set right in the written pages.

Pictures say how large they are, so that nothing moves when they come. Toggles have names. Lists of
references are none to programs that read aloud, as their entries are no items. Listings of source
link nowhere: one may hold objects that are documented by two names.
"""

import re
from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx

PICTURE = re.compile(r'<img(?![^>]* width=)([^>]*) src="([^":]+\.png)"')
PLAIN = (
    (re.compile(r"<summary>(?=<span class=\"toctree-toggle\")"), '<summary aria-label="more">'),
    (re.compile(r'<div role="list" class="citation-list">'), '<div class="citation-list">'),
    (re.compile(r'<a class="viewcode-back".*?</a>'), ""),
)


def polished(path: Path) -> str:
    """Return a page as it should have been written."""

    def sized(match: re.Match[str]) -> str:
        with Image.open(path.parent / match[2]) as image:
            width, height = image.size
        return f'<img width="{width}" height="{height}"{match[1]} src="{match[2]}"'

    text = PICTURE.sub(sized, path.read_text("utf-8"))
    for pattern, instead in PLAIN:
        text = pattern.sub(instead, text)
    return text


def polish(app: Sphinx, error: Exception | None) -> None:
    """Write all pages again."""
    for path in [] if error else Path(app.outdir).rglob("*.html"):
        path.write_text(polished(path), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Come last."""
    app.connect("build-finished", polish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
