"""A gateway whose workers are threads with real answers, and a browser without a window."""

import re
import time
from contextlib import suppress
from functools import partial
from html import unescape
from http.cookiejar import CookieJar
from multiprocessing import Pipe
from threading import Thread
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

from gates import gate

from dpmodels.codebook import Codebook
from dpmodels.gateway.schedule import Worker, _outcome
from dpmodels.gateway.service import Service
from dpmodels.gateway.state import FAILED
from dpmodels.privacy import Ledger

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>\u202eage'
ASK = {"verb": "mean", "formula": "age ~ sex", "eps": "0.5", "n": "400", "plan": "1"}
# Conditions on which the worker fails after the charge, and ends without an outcome.
FAILS, DIES = "age > 43", "age > 42"
SECRET = "3.1415926"  # In a row of the table


class _Threaded(Thread):
    """A thread in the place of a process, which ends with its connection."""

    def kill(self):
        pass

    def join(self, timeout=None):
        pass


def answering(settings, path):
    """Start a thread that charges, releases and saves as a worker process does."""
    near_end, far_end = Pipe()
    thread = _Threaded(target=partial(_answer, settings, path, far_end), daemon=True)
    thread.start()
    return Worker(thread, near_end, None)  # As of a CSV file


def _answer(settings, path, connection):
    book, ledger = Codebook.load(settings.codebook), Ledger.open(path)
    with suppress(EOFError, OSError):
        while True:
            job = connection.recv()
            condition = job["request"]["options"].get("subset", "")
            outcome = _outcome(job, settings, book, ledger)
            if DIES in condition:
                connection.close()
            connection.send((FAILED, {}) if FAILS in condition else outcome)


def started(folder, **settings):
    """Return a running service and a token of each analyst."""
    declared = gate(folder, **settings)
    with open(folder / "visits.csv", "a") as table:
        table.write(f"41,{SECRET},F\n")
    service = Service(declared, answering)
    return service, {name: service.state.issue_token(name, 1) for name in ("ann", "bob", "eve")}


class Page(NamedTuple):
    """What a browser received."""

    status: int
    path: str
    headers: object
    content: bytes

    @property
    def text(self):
        return self.content.decode()


class Browser:
    """A browser without scripts, which fills in the secret of its forms."""

    def __init__(self, url):
        self.url, self.secret = url, ""
        self.cookies = CookieJar()
        self._opener = build_opener(HTTPCookieProcessor(self.cookies))

    def get(self, path, fields=None):
        """Open a page, or send a form without the secret."""
        body = None if fields is None else urlencode(fields).encode()
        try:
            answer = self._opener.open(self.url + path, body, timeout=20)
        except HTTPError as error:
            answer = error
        with answer:
            place = urlsplit(answer.url).path
            page = Page(answer.status, place, answer.headers, answer.read())
        if match := re.search(rb'name="secret" value="(\w+)"', page.content):
            self.secret = match[1].decode()
        return page

    def send(self, path, **fields):
        """Send a form of the page that was opened last."""
        return self.get(path, {"secret": self.secret, **fields})

    def sign_in(self, token):
        """Open the page for a token, and send one."""
        self.get("/sign-in")
        return self.send("/sign-in", token=token)

    def plan(self, **fields):
        """Plan a request; return the page and what its button would send."""
        page = self.send("/tables/visits", **{**ASK, **fields})
        match = re.search(r'name="request" value="([^"]+)"', page.text)
        return page, match and unescape(match[1])

    def run(self, **fields):
        """Plan and run a request; return the path of its job."""
        return self.send("/tables/visits/run", request=self.plan(**fields)[1]).path

    def wait(self, job):
        """Wait for the outcome of a job, and return its page."""
        deadline = time.monotonic() + 20
        while "<h2>Waiting</h2>" in (page := self.get(job)).text:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return page
