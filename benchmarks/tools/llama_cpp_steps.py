"""llama.cpp in a process of its own: steps when asked, on stdin, and their seconds on stdout.

    python benchmarks/tools/llama_cpp_steps.py FILE.gguf THREADS CLOCK    (a Python that has llama-cpp-python)

Each line of stdin is JSON: {"read": [ids]} reads a prompt from the beginning, {"write": n} writes n tokens greedily.
"""

import json
import sys
import time

import numpy as np


def main(path: str, threads: int, clock: str) -> None:
    from llama_cpp import Llama, llama_print_system_info

    now = getattr(time, clock)
    model = Llama(path, n_ctx=4096, n_threads=threads, n_threads_batch=threads, verbose=False)
    print(json.dumps(llama_print_system_info().decode()), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        seconds, ids = [], []
        if "read" in asked:
            model.reset()
            start = now()
            model.eval(asked["read"])
            seconds.append(now() - start)
        for _ in range(asked.get("write", 0)):
            start = now()
            token = int(np.argmax(np.ctypeslib.as_array(model._ctx.get_logits(), shape=(model.n_vocab(),))))
            model.eval([token])
            seconds.append(now() - start)
            ids.append(token)
        print(json.dumps({"seconds": seconds, "ids": ids}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
