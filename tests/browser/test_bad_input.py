"""Things that are broken, newer or gone: the screen says what happened and what to do, and keeps what was there."""

import json
import re
import signal
import struct

import pytest

from tests.browser.conftest import HOSTS
from tests.browser.served import Server
from tests.browser.studio import Studio


def newer(data: bytes) -> bytes:
    """The same trace file, of a version that nobody knows yet."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    manifest = json.loads(header["__metadata__"]["regard"])
    manifest["version"] = 99
    header["__metadata__"]["regard"] = json.dumps(manifest)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def opened(tabs, html: str, folder, name: str):
    file = folder / f"{name}.html"
    file.write_text(html, encoding="utf-8")
    tab = tabs.new()
    tab.page.goto(file.as_uri())
    return tab


def told(tab) -> str:
    tab.page.get_by_role("alert").wait_for()
    tab.shot(f"bad-{re.sub('[^a-z]+', '-', tab.page.url.rsplit('/', 1)[-1])}")
    return tab.page.get_by_role("alert").inner_text()


def test_a_page_that_was_cut_in_its_data_says_so(tabs, page_file, tmp_path):
    html = page_file("stack").read_text(encoding="utf-8")
    data = html.rindex('class="trace">')
    for name, end in (("data", data + 2000), ("about", html.index('id="about">') + 60)):
        assert len(told(opened(tabs, html[:end], tmp_path, f"cut-{name}"))) > 20


def test_a_page_that_was_cut_in_half_says_so_without_any_script(tabs, page_file, tmp_path):
    html = page_file("stack").read_text(encoding="utf-8")
    tab = opened(tabs, html[: len(html) // 2], tmp_path, "cut-half")
    tab.forgive(["Content Security Policy", "Unexpected", "SyntaxError", "Invalid"])
    tab.page.get_by_text("not whole").wait_for()


def test_a_page_without_its_data_says_so(tabs, page_file, tmp_path):
    html = page_file("stack").read_text(encoding="utf-8")
    html = re.sub(r'<script type="application/x-regard".*?</script>', "", html, flags=re.DOTALL)
    assert len(told(opened(tabs, html, tmp_path, "empty"))) > 20


def test_a_page_of_a_newer_format_says_so(tabs, page_file, tmp_path):
    html = page_file("stack").read_text(encoding="utf-8")
    changed = re.sub(r'("format":\s*)1\b', r"\g<1>99", html, count=1)
    assert changed != html
    assert "newer" in told(opened(tabs, changed, tmp_path, "newer"))


@pytest.mark.parametrize("kind", HOSTS)
def test_a_file_that_is_no_whole_trace_is_refused_and_what_is_shown_stays(kind, open_in, folder, tmp_path):
    studio = open_in(kind, "stack")
    studio.open("map")
    studio.settled("map")
    whole = (folder / "other.trace").read_bytes()
    bad = {
        "half.trace": whole[: len(whole) // 2],
        "noise.trace": bytes(range(256)) * 20,
        "empty.trace": b"",
        "newer.trace": newer(whole),
        "huge.trace": struct.pack("<Q", 2**60) + whole[8:],
    }
    notice = studio.root.locator(".notice")
    if kind == "served":
        studio.tab.forgive(["status of 4"])  # the browser itself tells of each refusal
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
        place = studio.root.locator("header")
        if kind == "served":
            studio.root.locator("button.current").click()
            place = studio.root.get_by_role("dialog")
        place.locator("input[type=file]").first.set_input_files(tmp_path / name)
        notice.wait_for()
        text = notice.inner_text()
        assert len(text) > 30, name
        assert ("version 99" in text) == (name == "newer.trace"), text
        if name == "newer.trace":
            studio.shot("bad-newer-trace")
        notice.get_by_role("button").last.click()
        notice.wait_for(state="hidden")
    assert studio.probe("map", "weight", 5, 2) is not None


def test_a_dropped_trace_is_opened(open_in, folder):
    studio = open_in("page", "stack")
    studio.settled("map")
    data = list((folder / "other.trace").read_bytes())
    studio.root.locator(".frame").evaluate(
        """(element, data) => {
             const carried = new DataTransfer();
             carried.items.add(new File([new Uint8Array(data)], "other.trace"));
             for (const kind of ["dragover", "drop"])
               element.dispatchEvent(new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
           }""",
        data,
    )
    studio.eventually(lambda: "other" in studio.root.locator("header").inner_text())


def test_a_lost_server_is_told_and_nothing_typed_is_lost(tabs, folder):
    server = Server(folder)
    try:
        tab = tabs.new(server.home)
        tab.forgive(["ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "Failed to load resource"])
        tab.page.goto(server.address("stack", "#/view=map"))
        studio = Studio(tab, "served")
        studio.settled("map")
        text = studio.root.get_by_role("textbox").first
        text.fill("Two dogs sleep.")
    finally:
        server.process.stop(signal.SIGKILL)
    studio.place(2, 3, query=4)
    notice = studio.root.locator(".notice")
    notice.wait_for()
    assert "not responding" in notice.inner_text()
    assert text.input_value() == "Two dogs sleep."
    studio.shot("bad-lost")


@pytest.mark.parametrize(("locale", "words"), [("en-GB", "This link has expired"), ("zh-CN", "此链接已失效")])
def test_a_wrong_token_is_told_in_the_readers_language(tabs, server, locale, words):
    tab = tabs.new(server.home, locale=locale)
    tab.forgive(["401", "Failed to load resource"])
    tab.page.goto(f"http://{server.home}/?token=wrong")
    tab.page.get_by_role("alert").get_by_text(words).wait_for()


@pytest.mark.parametrize("kind", ["page", "served"])
def test_a_damaged_file_is_told_in_chinese_too(kind, open_in, folder, tmp_path):
    studio = open_in(kind, "stack", "#/view=map", locale="zh-CN")
    studio.settled("map")
    studio.tab.forgive(["status of 422"])
    whole = (folder / "other.trace").read_bytes()
    (tmp_path / "half.trace").write_bytes(whole[: len(whole) // 2])
    place = studio.root.locator("header")
    if kind == "served":
        studio.root.locator("button.current").click()
        place = studio.root.get_by_role("dialog")
    place.locator("input[type=file]").first.set_input_files(tmp_path / "half.trace")
    studio.root.locator(".notice").get_by_text("处被截断").wait_for()
    studio.shot("bad-cut-zh")


@pytest.mark.slow
def test_a_kernel_that_is_gone_is_told_in_the_cell(tabs, lab):
    tab = tabs.new(lab.home)
    kernel = lab.new_kernel()
    studio = Studio(tab, "notebook", lab.show(tab, "stack", kernel=kernel))
    studio.open("map")
    studio.settled("map")
    tab.forgive([""])  # JupyterLab itself has much to say about it
    lab.ask(f"/api/kernels/{kernel}", method="DELETE")
    for question in tab.page.locator(".jp-Dialog .jp-mod-accept").all():
        question.click()
    studio.place(2, 3, query=4)
    studio.eventually(lambda: any("kernel is not responding" in text for text in studio.alerts()), seconds=120)
    studio.shot("bad-kernel-gone")
