"""What the built site is made of: links that lead somewhere, and nothing from elsewhere."""

import re
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

pytestmark = pytest.mark.site

MEGABYTES = 40
# Attributes that make a browser fetch something, by tag.
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """Links, anchors and fetched files of one page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.fetched = set(), {"", "top"}, set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Note what a tag links to, is called, and fetches."""
        result = dict(attrs)
        self.anchors |= {result[key] for key in ("id", "name") if result.get(key)}
        if tag == "a" and result.get("href"):
            self.links.add(result["href"])
        if tag in FETCHED and result.get(FETCHED[tag]) and result.get("rel") != "canonical":
            self.fetched.add(result[FETCHED[tag]])


@cache
def parsed(path):
    return Page(path.read_text("utf-8"))


def outside(link):
    return bool(urlsplit(link).scheme) or link.startswith("//")


def targets(site, path):
    """Local links of a page: the link, the file it leads to, and the anchor there."""
    for link in parsed(path).links:
        if not outside(link):
            place, anchor = urldefrag(link)
            target = (path.parent / unquote(place)).resolve() if place else path
            yield link, target, unquote(anchor)


def every(site):
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def test_local_links_and_anchors_lead_somewhere(site):
    broken = [
        f"{path.relative_to(site)}: {link}"
        for path in every(site)
        for link, target, anchor in targets(site, path)
        if not target.is_file()
        or (target.suffix == ".html" and anchor not in parsed(target).anchors)
    ]
    assert broken == []


def test_every_page_is_reached_from_the_first(site):
    start = (site / "index.html").resolve()
    reached, extra = {start}, [start]
    for path in extra:
        new = {to for _, to, _ in targets(site, path) if to.suffix == ".html" and to.is_file()}
        extra += sorted(new - reached)
        reached |= new
    hidden = {path.resolve() for path in every(site) if "_modules" not in path.parts} - reached
    assert {path.stem for path in hidden} <= {"search", "genindex", "py-modindex", "index"}


def test_links_to_other_places_are_well_formed(site):
    links = {link for path in every(site) for link in parsed(path).links if outside(link)}
    allowed = re.compile(r"https?://[\w.-]+\.[a-z]{2,}(?:[/:#?]\S*)?$|mailto:\S+@\S+$")
    assert [link for link in sorted(links) if not allowed.match(link)] == []


def test_nothing_is_fetched_from_elsewhere(site):
    pages = every(site)
    fetched = {value for path in pages for value in parsed(path).fetched}
    assert len(fetched) > 10
    assert [
        value for value in sorted(fetched) if outside(value) and not value.startswith("data:")
    ] == []
    styles = [path.read_text("utf-8", "replace") for path in site.rglob("*.css")]
    assert [
        value for text in styles for value in re.findall(r"url\(['\"]?(?:https?:)?//", text)
    ] == []


def test_the_site_is_small(site):
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    assert size <= MEGABYTES * 2**20


def test_pages_have_a_language_a_title_and_one_first_heading(site, pages):
    for name in pages:
        text = (site / name).read_text("utf-8")
        assert re.search(r"<html[^>]* lang=\"en\"", text), name
        assert re.search(r"<title>[^<]+</title>", text), name
        assert len(re.findall(r"<h1[ >]", text)) == 1, name
