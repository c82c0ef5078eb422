"""The pages of a gateway in a browser: with scripts and without, on wide screens and phones."""

from contextlib import contextmanager

import pytest
from browsers import started
from gates import serving
from test_site_browser import SHIFT, WIDER

pytestmark = pytest.mark.site

WIDTHS, SCHEMES = (375, 1280), ("light", "dark")
LARGEST = 300_000  # Bytes of a page with its style, scripts and pictures
SIZE = "() => performance.getEntries().reduce((sum, one) => sum + (one.encodedBodySize || 0), 0)"
PLANTED = "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(3)>')"
PAGES = {
    "ann": ("/", "/tables/visits", "/jobs", "/jobs/x", "{job}"),
    "eve": ("/curator", "/curator/register", "/jobs", "{job}", "/curator/visits/disclosure"),
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """The address and tokens of a gateway without ticks."""
    folder = tmp_path_factory.mktemp("site")
    service, tokens = started(folder, eps=50.0, amount=20.0, least_seconds=1.0, n_at_most=1000)
    with serving(service) as url:
        yield url, tokens


@contextmanager
def signed_in(browser, gateway, name, **options):
    """A tab of somebody who signed in by the page."""
    url, tokens = gateway
    context = browser.new_context(base_url=url, **options)
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Token").fill(tokens[name])
    page.get_by_role("button", name="Sign in").click()
    yield page
    context.close()


def plan(page, formula, eps):
    """Fill in the form of the table, and plan."""
    page.goto("/tables/visits")
    page.get_by_label("Formula", exact=True).fill(formula)
    page.get_by_label("eps").fill(eps)
    page.get_by_role("button", name="Plan", exact=True).click()


@pytest.fixture(scope="module")
def job(browser, gateway):
    """The path of an answered job, which was planned and run without scripts."""
    with signed_in(browser, gateway, "ann", java_script_enabled=False) as page:
        plan(page, "age ~ sex", "0.5")
        assert page.get_by_role("heading", name="Plan").is_visible()
        page.get_by_role("button", name="Run, and spend eps = 0.5").click()
        path = page.url.removeprefix(gateway[0])
        for _ in range(50):
            if page.get_by_role("heading", name="Result").count():
                return path
            page.wait_for_timeout(100)
            page.get_by_role("link", name="Look again").click()
    pytest.fail("no answer")


def looked_at(page, path):
    """Load a page; return its errors, requests that leave the gateway, its size and its shift."""
    errors, elsewhere = [], []
    home = page.url.split("/", 3)[2]
    listeners = {
        "console": lambda entry: errors.append(entry.text) if entry.type == "error" else None,
        "pageerror": lambda error: errors.append(str(error)),
        "request": lambda sent: None if home in sent.url else elsewhere.append(sent.url),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    page.goto(path, wait_until="networkidle")
    size, shift = page.evaluate(SIZE), page.evaluate(SHIFT)
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    is_refused = path == "/jobs/x"
    return [] if is_refused else errors, elsewhere, size, shift


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_pages_can_be_read_by_everybody(browser, gateway, job, name, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    view = {"width": width, "height": 900}
    with signed_in(browser, gateway, name, viewport=view, color_scheme=scheme) as page:
        for path in PAGES[name]:
            errors, elsewhere, size, shift = looked_at(page, path.format(job=job))
            assert (errors, elsewhere, shift) == ([], [], 0)
            assert 1000 < size <= LARGEST
            assert page.evaluate(WIDER) == 0, path
            violations = axe.run(page).response["violations"]
            grave = [
                violation["id"]
                for violation in violations
                if violation["impact"] in ("serious", "critical")
            ]
            assert grave == [], path


@pytest.mark.parametrize("width", WIDTHS)
def test_a_plan_and_its_options_fit_the_window(browser, gateway, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    view = {"width": width, "height": 900}
    with signed_in(browser, gateway, "ann", viewport=view) as page:
        plan(page, "age ~ sex", "0.7")
        page.get_by_label("Assumed rows").fill("5000")
        page.get_by_text("Options of mean").click()
        page.get_by_label("subset").press("Enter")
        page.get_by_text("Expected of 5,000 rows").wait_for()
        assert page.evaluate(WIDER) == 0
        violations = axe.run(page).response["violations"]
        assert [
            violation for violation in violations if violation["impact"] in ("serious", "critical")
        ] == []


def test_names_are_completed_and_the_outcome_appears_by_itself(browser, gateway):
    with signed_in(browser, gateway, "ann") as page:
        page.goto("/tables/visits")
        page.get_by_label("Verb").select_option("hist")
        page.get_by_text("Options of hist").wait_for()
        formula = page.get_by_label("Formula", exact=True)
        formula.press_sequentially("~ wa")
        names = page.locator("#names button:visible")
        assert names.all_inner_texts() == ["wage"]
        names.click()
        assert formula.input_value() == "~ wage"
        page.get_by_label("eps").fill("0.4")
        formula.press("Enter")
        page.get_by_role("button", name="Run, and spend eps = 0.4").click()
        page.get_by_role("heading", name="Result").wait_for(timeout=20_000)
        picture = page.locator("figure img").first
        assert picture.evaluate("image => image.naturalWidth > 100")
        assert picture.get_attribute("alt")


def test_a_hostile_formula_runs_no_script(browser, gateway):
    with signed_in(browser, gateway, "ann") as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        plan(page, '"><script>alert(1)</script><img src=x onerror=alert(2)>', "0.1")
        assert "<script>alert(1)" in page.get_by_role("alert").inner_text()
        page.evaluate(PLANTED)
        page.wait_for_timeout(200)


def test_the_session_ends_with_signing_out(browser, gateway):
    with signed_in(browser, gateway, "ann") as page:
        assert page.evaluate("document.cookie") == ""
        page.get_by_role("button", name="Sign out").click()
        page.goto("/tables/visits")
        assert page.url.endswith("/sign-in")
