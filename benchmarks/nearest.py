"""Does a search among 100,000 vectors need more memory than one among 10,000, and is it exact?

    python benchmarks/nearest.py

The vectors are float32 of width 384, as MiniLM gives them, and lie in a file that is mapped into memory. Each search,
for the ten nearest of 64 queries, is a process of its own, which reads the peak of the memory it holds itself (what is
mapped is the system's, and given back when it is needed). Beside ours stands what one writes otherwise: load all, one
product, one `topk`. The cosines of both are compared with float64.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from tools.measure import Row, report

WIDTH, QUERIES, NEAREST = 384, 64, 10

CHILD = """
import re, sys, time, numpy as np, torch, torch.nn.functional as F
from regard.tasks.nearest import nearest
torch.set_num_threads(1)
def held():  # what is held besides mapped files, in MB
    return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
def of_torch(queries, vectors, k):
    whole = torch.from_numpy(np.array(vectors))
    return (F.normalize(queries, dim=1) @ F.normalize(whole, dim=1).T).topk(k)
vectors, queries = np.load({path!r}, mmap_mode="r"), torch.from_numpy(np.load({queries!r}))
way = {{"ours": nearest, "torch": of_torch}}[{way!r}]
way(queries, vectors[:3000], {k})
import threading
before, peak, over = held(), [0.0], threading.Event()
def look():
    while not over.wait(0.002):
        peak[0] = max(peak[0], held())
watcher = threading.Thread(target=look)
watcher.start()
found = way(queries, vectors, {k})
over.set(), watcher.join()
start = time.process_time()
for _ in range(3):
    way(queries, vectors, {k})
taken = (time.process_time() - start) / 3
unit = lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)
exact = np.concatenate([unit(queries.double().numpy()) @ unit(vectors[i:i + 4096].astype(np.float64)).T
                        for i in range(0, len(vectors), 4096)], 1)
order = np.argsort(-exact.astype(np.float32), axis=1, kind="stable")[:, :{k}]
print(peak[0] - before, taken, float((np.asarray(found[1]) == order).mean()))
"""


def search(way: str, path: Path, queries: Path) -> tuple[float, float, float]:
    """(MB more than before, seconds of the processor, share of places that float64 fills alike)."""
    code = CHILD.format(path=str(path), queries=str(queries), way=way, k=NEAREST)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    memory, taken, same = map(float, done.stdout.split())
    return memory, taken, same


def main() -> int:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place, draw, found = Path(folder), np.random.default_rng(0), {}
        queries = place / "queries.npy"
        np.save(queries, draw.standard_normal((QUERIES, WIDTH), dtype=np.float32))
        for count in (10_000, 100_000):
            path = place / f"{count}.npy"
            np.save(path, draw.standard_normal((count, WIDTH), dtype=np.float32))
            for way in ("ours", "torch"):
                found[way, count] = search(way, path, queries)
                name = f"{count:,} vectors, {way}"
                rows.append(Row(f"{name}: memory", found[way, count][0], 32.0 if way == "ours" else None, "MB"))
                least = 100.0 if way == "ours" else None
                rows.append(Row(f"{name}: places as in float64", 100 * found[way, count][2], least, "%", least=True))
    ours, other = found["ours", 100_000], found["torch", 100_000]
    rows.append(Row("100,000 vectors: one product and topk / ours, processor time", other[1] / ours[1]))
    return report("nearest", rows)


if __name__ == "__main__":
    raise SystemExit(main())
