"""A disk that is full: a run is shown all the same, a file is refused, the page says both, and typed text stays."""

import re

import pytest

from tests.browser.served import Server
from tests.browser.studio import Studio

TEXT = "My friend bought two books yesterday."
FULL = """
import errno
import regard.app.studio.traces as traces

def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")

traces.save = traces.put = full
from regard.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def full(folder, tmp_path_factory):
    """`regard serve` on a machine where nothing can be written any more."""
    start = tmp_path_factory.mktemp("full") / "start.py"
    start.write_text(FULL, encoding="utf-8")
    server = Server(folder, start=(str(start),))
    yield server
    server.stop()


@pytest.fixture(params=["en-GB", "zh-CN"])
def studio(request, tabs, full):
    tab = tabs.new(full.home, locale=request.param)
    tab.forgive(["status of 507"])  # the browser itself tells of the refusal
    tab.page.goto(full.address("stack", "#/view=map"))
    studio = Studio(tab, request.param)
    studio.settled("map")
    return studio


def chinese(text: str) -> bool:
    return len(re.findall("[\u4e00-\u9fff]", text)) > 20


def test_a_run_is_shown_and_the_page_says_that_it_was_not_kept(studio):
    studio.root.get_by_role("combobox").first.select_option("en-zh-grammar")
    field = studio.root.locator("textarea[data-text]")
    field.fill(TEXT)
    before = studio.page.url
    studio.root.locator(".compose button.strong").click()
    studio.eventually(lambda: studio.page.url, lambda url: url != before and "trace=" in url)
    notice = studio.root.locator(".notice")
    notice.wait_for()
    said = notice.inner_text()
    assert "No space left on device" in said
    assert ("磁盘" in said or "无法保存" in said) if studio.kind == "zh-CN" else "lost when the server stops" in said
    assert chinese(said) == (studio.kind == "zh-CN")
    assert field.input_value() == TEXT
    studio.settled("map")
    studio.eventually(lambda: studio.probe("map", "weight", 1, 0) is not None)
    studio.shot("bad-full-disk-run")


def test_a_file_is_refused_and_what_is_shown_and_typed_stays(studio, folder):
    field = studio.root.locator("textarea[data-text]")
    field.fill(TEXT)
    weight = studio.probe("map", "weight", 5, 2)
    studio.root.locator("button.current").click()
    studio.root.get_by_role("dialog").locator("input[type=file]").first.set_input_files(folder / "other.trace")
    notice = studio.root.locator(".notice")
    notice.wait_for()
    said = notice.inner_text()
    assert ("磁盘已满" if studio.kind == "zh-CN" else "the disk is full") in said
    assert chinese(said) == (studio.kind == "zh-CN")
    assert field.input_value() == TEXT
    assert studio.probe("map", "weight", 5, 2) == weight
    studio.shot("bad-full-disk-file")
