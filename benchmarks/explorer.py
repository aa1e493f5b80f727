"""Is the explorer small and quick? A page beside BertViz's, a long trace served, and panning, all in a real browser.

Everything is measured in one run on one machine. BertViz is measured beside it where it is installed (`make bench`).

Eight viewers are measured three times, each time with one of them running a model again and again:

- As people look. A viewer goes somewhere (another level, another place), asks for the tiles of a screen, four at a time
  as the map view does, looks for half a second to one and a half, and goes on. Nobody looks at a tile for less.
- Without a pause. Seven viewers always have a question in the air, at all levels, at random. That is no person, it is
  the most that seven can ask: as many questions as the machine answers. It is kept as the harder measure.
- Without a pause, and only close up. Far away a map has few tiles, which the server sends again as they are; close up
  nearly every tile is another and must be computed. This says what tiles cost where nothing is shared.

A model lets tiles go first, so its runs per second stand beside them: tiles must not be quick because it starves.

Whoever asks stands for other machines but takes time of this one, so he does as little as he can: plain sockets, and
the bytes of an answer are not looked at.
"""

import gzip
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch loads, as `regard serve` does

import torch
from tools.measure import Row, report

import regard
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace
from regard.views.explorer.bundle import read_bundle

LONG, WIDTH, VIEWERS = 16_384, 64, 8
LEVELS, CLOSE, TILE = 7, 3, 256
SCREEN = (3, 4)  # tiles down and across that a window shows
AT_ONCE = 4  # tiles that the map view asks for at a time
PAUSE = (0.5, 1.5)  # seconds that a person looks before going on
Ask = Callable[[str, dict], bytes]


def made(n: int, layers: int, heads: int, d: int) -> Trace:
    """Self-attention over n tokens, with numbers as a trained model would have them."""
    generator = torch.Generator().manual_seed(n)
    tokens = (regard.Tokens(tuple(f"t{i}" for i in range(n))),)
    found = []
    for layer in range(layers):
        q, k, v = torch.randn(3, 1, heads, n, d, generator=generator)
        attended = regard.attend(q, k, v, mask=regard.causal())
        name = f"layers.{layer}.attention"
        found.append(Layer(name, "self", attended.weights, q=q, k=k, v=v, queries=tokens, keys=tokens))
    return Trace([Run(found)], model="made")


@contextmanager
def browser() -> Iterator:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        try:
            yield chromium
        finally:
            chromium.close()


def until(tab, expression: str) -> None:
    """Wait for it; the browser's own waiting would evaluate text, which our pages forbid."""
    end = time.perf_counter() + 60
    while not tab.evaluate(expression):
        if time.perf_counter() > end:
            raise TimeoutError(expression)
        time.sleep(0.005)


def page_of(trace: Trace, folder: Path, name: str) -> tuple[Path, float]:
    """The page and the seconds that it took, the better of two."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        trace.page(folder / name)
        times.append(time.perf_counter() - start)
    return folder / name, min(times)


def drawn(chromium, path: Path) -> float:
    """Seconds from opening a page to its first map."""
    tab = chromium.new_page(viewport={"width": 1400, "height": 900})
    start = time.perf_counter()
    tab.goto(path.as_uri())
    tab.wait_for_selector("[data-view=map]")
    until(tab, "document.querySelector('[data-view=map]').regard?.tiles() > 0")
    took = time.perf_counter() - start
    tab.close()
    return took


def bertviz(n: int, layers: int, heads: int, folder: Path) -> tuple[float, float] | None:
    """Megabytes of BertViz's model view, and seconds to make it; None where it is not installed."""
    try:
        from bertviz import model_view
    except ImportError:
        print("bertviz is not installed, so it is not measured; make bench installs it")
        return None
    weights = [torch.softmax(torch.randn(1, heads, n, n), -1) for _ in range(layers)]
    start = time.perf_counter()
    html = model_view(weights, [f"t{i}" for i in range(n)], html_action="return")
    (folder / "bertviz.html").write_text(html.data)
    return (folder / "bertviz.html").stat().st_size / 1e6, time.perf_counter() - start


@contextmanager
def served(trace: Path, folder: Path) -> Iterator[str]:
    """The address of a server that holds this trace."""
    command = [sys.executable, "-m", "regard", "serve", str(trace), "--no-open", "--keep", str(folder / "kept")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in process.stdout:  # type: ignore[union-attr]
            found = re.search(r"http://\S+", line)
            if found:
                threading.Thread(target=process.stdout.read, daemon=True).start()  # type: ignore[union-attr]
                yield found.group(0)
                break
    finally:
        process.terminate()
        process.wait(30)


def asks(address: str, long: str = "") -> tuple[Ask, str]:
    """(ask(what, about) → bytes, the id of the long trace), over one connection. Who knows the id opens it no more."""
    base, token = address.split("/?token=")
    connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=120)
    headers = {"Authorization": f"Bearer {token}", "Origin": base, "Content-Type": "application/json"}

    def sent(method: str, path: str, about: dict | None = None) -> bytes:
        body = None if about is None else json.dumps(about)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
        except ConnectionError:  # the server closes what was not used for a while; a browser connects again too
            connection.close()
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
        found = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {found[:200]!r}")
        return found

    if not long:
        long = next(card["id"] for card in json.loads(sent("GET", "/api/traces")) if "long" in card["name"])
        sent("GET", f"/api/traces/{long}")
    return lambda what, about: sent("POST", f"/api/traces/{long}/ask/{what}", about), long


def tile(head: int, level: int, row: int, column: int) -> dict:
    at = {"layer": 0, "batch": 0, "head": head, "level": level, "row": row, "column": column}
    return at | {"coarse": False}


def p95(times: list[float]) -> float:
    return quantiles(times, n=20)[-1]


def timed(ask: Ask, about: dict) -> float:
    start = time.perf_counter()
    ask("tile", about)
    return time.perf_counter() - start


def across(level: int) -> int:
    """How many tiles of a level stand side by side."""
    return max(1, LONG // (TILE << level))


def tiles(ask: Ask, count: int, seed: int, levels: int = LEVELS) -> list[float]:
    """Seconds of tiles at these levels, drawn at random from the lower half, where a causal map is seen."""
    chance = random.Random(seed)
    times = []
    for number in range(count):
        row = chance.randrange(across(number % levels))
        times.append(timed(ask, tile(0, number % levels, row, chance.randint(0, row))))
    return times


def without_pause(address: str, seed: int) -> list[float]:
    """One viewer who asks the next the moment that an answer came."""
    return tiles(asks(address)[0], 40, seed)


def close_up(address: str, seed: int) -> list[float]:
    """The same, only where tiles are many; other places than those that were asked for before."""
    return tiles(asks(address)[0], 40, seed + 1000, CLOSE)


def as_people_look(address: str, seed: int) -> list[float]:
    """One viewer who goes from place to place. What is waited for is counted from the moment that it is asked."""
    chance, times = random.Random(seed), []
    ask, long = asks(address)
    connections = [ask, *(asks(address, long)[0] for _ in range(AT_ONCE - 1))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        time.sleep(chance.uniform(0, PAUSE[1]))
        for _ in range(7):
            level = chance.randrange(LEVELS)
            top = chance.randint(0, max(0, across(level) - SCREEN[0]))
            left = chance.randint(0, min(top, max(0, across(level) - SCREEN[1])))
            rows = range(top, min(across(level), top + SCREEN[0]))
            columns = range(left, min(across(level), left + SCREEN[1]))
            wanted = [tile(0, level, row, column) for row in rows for column in columns]
            shares = [wanted[first::AT_ONCE] for first in range(AT_ONCE)]
            for found in pool.map(lambda ask, share: [timed(ask, one) for one in share], connections, shares):
                times.extend(found)
            time.sleep(chance.uniform(*PAUSE))
    return times


def crowd(address: str, look: Callable[[str, int], list[float]]) -> tuple[list[float], float]:
    """Seconds of tiles for seven viewers while an eighth runs a model again and again, and its runs per second."""
    from websockets.sync.client import connect

    base, token = address.split("/?token=")
    done, runs = threading.Event(), 0

    def run() -> None:
        nonlocal runs
        while not done.is_set():
            headers = {"Authorization": f"Bearer {token}"}
            with connect(base.replace("http", "ws") + "/api/run", origin=base, additional_headers=headers) as socket:  # type: ignore[arg-type]
                socket.send(
                    '{"model": "induction", "text": "A B C D A B", "steps": 24, "temperature": 0, "edits": [], '
                    '"picture": null}'
                )
                for _ in socket:
                    pass
            runs += 1

    start = time.perf_counter()
    runner = threading.Thread(target=run, daemon=True)
    runner.start()
    with ThreadPoolExecutor(VIEWERS - 1) as viewers:
        times = [one for found in viewers.map(lambda seed: look(address, seed), range(VIEWERS - 1)) for one in found]
    done.set()
    runner.join(30)
    return times, runs / (time.perf_counter() - start)


def panned(chromium, address: str) -> tuple[float, float]:
    """Frames a second while a map of cached tiles is dragged, and megabytes of the page's heap and canvases."""
    tab = chromium.new_page(viewport={"width": 1400, "height": 900})
    tab.goto(address)
    tab.wait_for_selector("[data-view=map]")
    link = f"#/trace={asks(address)[1]}&view=map&layer=0&head=0&zoom=6000,6000,8000,8000"
    tab.evaluate("link => { location.hash = link }", link)
    until(tab, "document.querySelector('[data-view=map]')?.regard?.zoom().right <= 8001")
    tab.evaluate("document.querySelector('[data-view=map]').regard.settled()")
    box = tab.locator("[data-view=map] canvas").first.bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.evaluate("""() => {
      window.frames_ = []
      const step = (now) => { window.frames_.push(now); requestAnimationFrame(step) }
      requestAnimationFrame(step)
    }""")
    for turn in range(2):  # the first time brings the tiles, the second is measured
        tab.evaluate("window.frames_.length = 0")
        tab.mouse.move(*middle)
        tab.mouse.down()
        for step in range(120):
            tab.mouse.move(middle[0] + 100 * ((step % 40) / 40 - 0.5), middle[1] + 80 * ((step % 30) / 30 - 0.5))
        frames = tab.evaluate("window.frames_")
        tab.mouse.up()
        if turn == 0:
            tab.evaluate("document.querySelector('[data-view=map]').regard.settled()")
    seconds = (frames[-1] - frames[0]) / 1000
    session = tab.context.new_cdp_session(tab)
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")
    total = (used["usedSize"] + used.get("backingStorageSize", 0) + used.get("embedderHeapUsedSize", 0)) / 1e6
    tab.close()
    return (len(frames) - 1) / seconds, total


def main() -> int:
    rows = [Row("bundle, gzipped", len(gzip.compress(read_bundle().encode())) / 1000, 250, "kB")]
    folder = Path(tempfile.mkdtemp())
    with browser() as chromium:
        for n, size in ((512, 8.0), (128, 2.5)):
            trace = made(n, 6, 12, 32)
            path, took = page_of(trace, folder, f"{n}.html")
            rows.append(Row(f"page, {n} tokens × 6 × 12", path.stat().st_size / 1e6, size, "MB"))
            if n == 512:
                rows.append(Row("  made in", took, 1.0, "s"))
                rows.append(Row("  first map after", min(drawn(chromium, path) for _ in range(3)), 1.0, "s"))
            theirs = bertviz(n, 6, 12, folder)
            if theirs is not None:
                rows.append(Row(f"  BertViz beside it, {n} tokens", theirs[0], None, "MB"))
                rows.append(Row("  BertViz takes", theirs[1], None, "s"))
        made(LONG, 1, 2, WIDTH).save(folder / "long.trace")
        with served(folder / "long.trace", folder) as address:
            ask, _ = asks(address)
            start = time.perf_counter()
            ask("tile", tile(0, 6, 0, 0))
            rows.append(Row("16,384 tokens served: first overview", time.perf_counter() - start, 1.5, "s"))
            rows.append(Row("  tiles, p95", 1000 * p95(tiles(ask, 140, 1)), 60, "ms"))
            looks = {"without a pause": without_pause, "so and close up": close_up, "as people look": as_people_look}
            for name, look in looks.items():
                times, runs = crowd(address, look)
                rows.append(
                    Row(f"  eight viewers {name}, one running a model: tiles, p95", 1000 * p95(times), 150, "ms")
                )
                rows.append(Row("    half of them within", 1000 * median(times), None, "ms"))
                rows.append(Row("    the model meanwhile", runs, None, "runs/s"))
            rate, memory = panned(chromium, address)
            rows.append(Row("  panning", rate, 50, "fps", least=True))
            rows.append(Row("  memory of the page", memory, 300, "MB"))
    shutil.rmtree(folder)
    return report("explorer", rows)


if __name__ == "__main__":
    sys.exit(main())
