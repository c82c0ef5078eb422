"""The built site on a local address, and a browser that looks at it."""

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("DPMODELS_SITE", ROOT / "build" / "site"))
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without a log."""

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="session")
def site():
    """Folder of the built site; skips where it was not built."""
    if not (SITE / "index.html").is_file():
        pytest.skip(f"no site: run python docs/build.py, or set DPMODELS_SITE (now {SITE.name})")
    return SITE


@pytest.fixture(scope="session")
def pages(site):
    """Every page but listings of source, by its address below that of the site."""
    result = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return [name for name in result if not name.startswith(("_modules/", "_static/"))]


@pytest.fixture(scope="session")
def address(site):
    """Where the site is served."""
    serve = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    """A browser without a window; skips without one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    result = next(filter(None, map(shutil.which, BROWSERS)), None)
    if result is None:
        pytest.skip(f"no browser: install one of {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=result, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser, address):
    """Open a page of the site: ``open_page("index.html", width=400, scheme="dark")``."""
    contexts = []

    def opened(name, width=1400, scheme="light"):
        view = {"width": width, "height": 900}
        context = browser.new_context(viewport=view, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.goto(f"{address}/{name}")
        return page

    yield opened
    for context in contexts:
        context.close()
