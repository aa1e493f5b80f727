"""A real browser and the three hosts. Where Chromium or the bundle is missing, these tests are skipped and say so."""

import shutil
from pathlib import Path

import pytest

from regard.views.explorer.bundle import BUILT
from tests.browser.studio import Studio
from tests.browser.tab import Tab

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
SIZE = {"width": 1280, "height": 860}
HOSTS = ("page", "served", "notebook")


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium; install it: apt-get install chromium")
    if not BUILT.exists():
        pytest.skip("needs the explorer; build it: make bundle")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as playing:
        started = playing.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=120_000)
        yield started
        started.close()


class Tabs:
    """Tabs, each in a browser profile of its own."""

    def __init__(self, browser) -> None:
        self.browser, self.opened = browser, []

    def new(self, home: str = "", **more) -> Tab:
        options = {"viewport": SIZE, "locale": "en-GB", "color_scheme": "light", "accept_downloads": True, **more}
        self.opened.append(Tab(self.browser.new_context(**options).new_page(), home))
        return self.opened[-1]

    def wrong(self) -> list[str]:
        """All that must not have happened since the last look."""
        found = [error for tab in self.opened for error in tab.wrong()]
        alive = [tab for tab in self.opened if not tab.page.is_closed()]
        ran = [tab.page.evaluate("window.__pwned ?? null") for tab in alive]
        for tab in self.opened:
            tab.errors.clear()
            tab.requests.clear()
        return found + [f"a script ran: {one}" for one in ran if one is not None]

    def close(self) -> None:
        for tab in self.opened:
            tab.page.context.close()


@pytest.fixture
def tabs(browser):
    """Tabs for one test. At the end none of them may have seen anything wrong."""
    tabs = Tabs(browser)
    yield tabs
    wrong = tabs.wrong()
    tabs.close()
    assert wrong == []


@pytest.fixture(scope="session")
def traces(tmp_path_factory):
    """The examples by name, as they come back from their files, and the folder of the files."""
    import regard
    from tests.browser.examples import ALL

    folder = tmp_path_factory.mktemp("traces")
    for name, make in ALL.items():
        make().save(folder / f"{name}.trace")
    return {name: regard.load(folder / f"{name}.trace") for name in ALL}, folder


@pytest.fixture(scope="session")
def trace_of(traces):
    return traces[0].__getitem__


@pytest.fixture(scope="session")
def folder(traces) -> Path:
    return traces[1]


@pytest.fixture(scope="session")
def page_file(traces, tmp_path_factory):
    """The page of an example, written once; `precision` as in `trace.page`."""
    written: dict[tuple[str, str], Path] = {}
    folder = tmp_path_factory.mktemp("pages")

    def write(name: str, precision: str = "float32", **more) -> Path:
        key = (name, f"{precision} {more}")
        if key not in written:
            from tests.browser.examples import ALL

            written[key] = folder / f"{name}-{len(written)}.html"
            ALL[name]().page(written[key], precision=precision, **more)  # not from its file: surrogates stay
        return written[key]

    return write


@pytest.fixture(scope="session")
def server(folder):
    """`regard serve` over the examples: the process, its address with the token, and the traces' ids by name."""
    from tests.browser.served import Server

    server = Server(folder)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def lab(traces, tmp_path_factory):
    """A real JupyterLab with a notebook that has one cell per example."""
    from tests.browser.lab import Lab

    lab = Lab(tmp_path_factory.mktemp("notebooks"), traces[1])
    yield lab
    lab.stop()


def opened(request, tabs: Tabs, kind: str, name: str, hash: str = "", **more) -> Studio:
    """A studio over an example in one of the hosts."""
    if kind == "page":
        tab = tabs.new("", **more)
        tab.page.goto(request.getfixturevalue("page_file")(name).as_uri() + hash)
        return Studio(tab, kind)
    if kind == "served":
        server = request.getfixturevalue("server")
        tab = tabs.new(server.home, **more)
        tab.page.goto(server.address(name, hash))
        return Studio(tab, kind)
    lab = request.getfixturevalue("lab")
    tab = tabs.new(lab.home, **more)
    return Studio(tab, kind, lab.show(tab, name))


@pytest.fixture
def open_in(request, tabs):
    """Opens studios for one test."""
    return lambda kind, name, hash="", **more: opened(request, tabs, kind, name, hash, **more)


@pytest.fixture(scope="session", params=HOSTS)
def shared_studio(request, browser):
    """One studio over the usual example in each host, for all tests that leave it as it was."""
    tabs = Tabs(browser)
    yield tabs, opened(request, tabs, request.param, "stack")
    tabs.close()


@pytest.fixture
def studio(shared_studio):
    """The same, at the first layer and head, with a look at the end at what must not have happened."""
    tabs, studio = shared_studio
    studio.place()
    yield studio
    assert tabs.wrong() == []
