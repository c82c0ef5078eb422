"""The built site as readers see it, in a browser: every page, and what can be done on one."""

import os
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.site

NARROW, WIDE = 400, 1400
REDUCED = os.environ.get("DPMODELS_REDUCED", "0") != "0"
# One of each kind of page.
KINDS = (
    "index.html",
    "guide.html",
    "vignettes/01-getting-started.html",
    "api.html",
    "api/dpmodels.dp_pca.html",
    "api/dpmodels.results.pca.PCAResult.html",
    "api/dpmodels.mechanisms.covariance.gauss.html",
    "theory.html",
    "gallery.html",
    "glossary.html",
    "search.html",
    "genindex.html",
)
SHIFT = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
  }).observe({type: 'layout-shift', buffered: true});
  requestAnimationFrame(() => setTimeout(() => done(sum), 50));
})"""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Seen(NamedTuple):
    """What went wrong while a page was looked at."""

    errors: list
    failed: list
    elsewhere: list
    wider: dict
    shift: float


def looked_at(page, address, name):
    """Load a page wide and look at it narrow, too; return what was seen."""
    errors, failed, elsewhere = [], [], []
    heard = {
        "console": lambda value: errors.append(value.text) if value.type == "error" else None,
        "pageerror": lambda error: errors.append(str(error)),
        "requestfailed": lambda request: failed.append(request.url),
        "response": lambda got: failed.append(got.url) if got.status >= 400 else None,
        "request": lambda value: (
            None if value.url.startswith((address, "data:")) else elsewhere.append(value.url)
        ),
    }
    for event, listener in heard.items():
        page.on(event, listener)
    page.goto(f"{address}/{name}", wait_until="load")
    shift = page.evaluate(SHIFT)
    wider = {WIDE: page.evaluate(WIDER)}
    page.set_viewport_size({"width": NARROW, "height": 900})
    wider[NARROW] = page.evaluate(WIDER)
    page.close()
    return Seen(errors, failed, elsewhere, wider, shift)


@pytest.fixture(scope="module")
def seen(browser, address, pages):
    """Every page, looked at once; of the reference one in ten in a reduced run, and each kind."""
    chosen = [
        name
        for place, name in enumerate(pages)
        if not REDUCED or not name.startswith("api/") or name in KINDS or place % 10 == 0
    ]
    context = browser.new_context(viewport={"width": WIDE, "height": 900})
    # Each in a tab of its own: one that was made narrow would be laid out twice.
    values_by_name = {name: looked_at(context.new_page(), address, name) for name in chosen}
    context.close()
    return values_by_name


def test_pages_load_without_errors(seen):
    assert len(seen) > 30
    assert {name: values.errors for name, values in seen.items() if values.errors} == {}
    assert {name: values.failed for name, values in seen.items() if values.failed} == {}


def test_no_request_leaves_the_machine(seen):
    assert {name: values.elsewhere for name, values in seen.items() if values.elsewhere} == {}


def test_nothing_moves_while_a_page_loads(seen):
    assert {name: values.shift for name, values in seen.items() if values.shift >= 0.1} == {}


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_pages_are_no_wider_than_the_window(seen, width):
    wider = {name: values.wider[width] for name, values in seen.items() if values.wider[width] > 0}
    assert wider == {}


@pytest.mark.parametrize("where", ["served", "from a file"])
def test_search_finds_a_verb(browser, address, site, where):
    page = browser.new_page()
    base = address if where == "served" else site.resolve().as_uri()
    page.goto(f"{base}/search.html?q=dp_pca")
    first = page.locator("#search-results li a").first
    first.wait_for(timeout=10_000)
    result = page.locator("#search-results li a").evaluate_all("all => all.map(a => a.href)")
    page.close()
    assert any("dpmodels.dp_pca.html" in link for link in result[:3])


def test_the_theme_turns_dark_and_stays_so(open_page):
    page = open_page("index.html")
    shade = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    assert min(page.evaluate(shade)) > 200
    page.locator(".theme-switch-button:visible").click()
    page.locator("[data-mode=dark]:visible").last.click()
    page.wait_for_function(f"Math.max(...{shade}) < 60")
    page.reload()
    assert max(page.evaluate(shade)) < 60


def test_formulas_are_drawn(open_page):
    page = open_page("vignettes/08-the-retraction.html")
    formulas = page.locator("math")
    assert formulas.count() > 5
    sizes = formulas.evaluate_all("all => all.map(m => m.getBoundingClientRect().height)")
    assert min(sizes) > 5
    assert page.locator("math msup").count() > 2
    assert "\\top" not in page.locator("main").inner_text()


def test_the_copy_button_copies_code_without_prompts(browser, address):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}/api/dpmodels.dp_pca.html")
    cell = page.locator("div.highlight:has(button.copybtn)").first
    cell.hover()
    cell.locator("button.copybtn").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    context.close()
    assert copied.startswith("import dpmodels as dp")
    assert ">>>" not in copied


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", KINDS)
def test_a_kind_of_page_can_be_read_by_everybody(open_page, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(name, scheme=scheme)
    result = axe.run(page).response["violations"]
    grave = {
        value["id"]: [node["html"][:200] for node in value["nodes"][:3]]
        for value in result
        if value["impact"] in ("serious", "critical")
    }
    assert grave == {}
