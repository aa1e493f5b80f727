"""How much memory does a question to the map take at n = 16,384? The full matrix would be 1 GB.

    python benchmarks/map_memory.py

Each question is asked in a fresh process, which reads the peak of its own resident memory before and after;
q and k are there before. A small map is asked first, so that code and thread pools do not count.
"""

import subprocess
import sys

from tools.measure import Row, report

QUESTIONS = {
    "entropy": "m.entropy()",
    "distance": "m.distance()",
    "received": "m.received()",
    "sink": "m.sink()",
    "log_normaliser": "m.log_normaliser()",
    "top(8)": "m.top(8)",
    "pool(512, 512)": "m.pool(512, 512)",
    "pool(500, 300)": "m.pool(500, 300)",
    "a row": "m[0, 0, 9000]",
    "a tile": "m[0, 0, 9000:9256, 100:356]",
    "a column": "m[0, 0, :, 77]",
}

CHILD = """
import resource, torch, regard
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def asked(n, mask):
    q, k, v = (torch.randn(1, 1, n, 64) for _ in range(3))
    return regard.attend(q, k, v, mask=mask).weights
with torch.no_grad():
    mask = {mask}
    m = asked(600, mask)
    {question} if "9000" not in {question!r} else m[0, 0, 5:500].sum()
    m = asked(16384, mask)
    before = peak()
    kept = {question}
    print(peak() - before)
"""


def main() -> int:
    rows = []
    for mask in ("None", "regard.causal()"):
        for name, question in QUESTIONS.items():
            small = question.replace("77", "7")
            code = CHILD.format(mask=mask, question=small)
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            label = "open" if mask == "None" else "causal"
            rows.append(Row(f"{label}, {name}", float(done.stdout), 64.0, "MB"))
    return report("map_memory", rows)


if __name__ == "__main__":
    sys.exit(main())
