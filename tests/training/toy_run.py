"""The toy trained by a process of its own, alone or as one of several: `python toy_run.py '[{"folder": "x"}]'`.

Each job says a folder, whether to resume there, and settings. Several jobs share one process group, which saves the
time of starting.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from regard.errors import RegardError
from regard.training.distributed import distributed
from regard.training.fit import fit
from tests.training.toy import Toy, ToySettings


def do(job: dict[str, Any]) -> int:
    torch.set_num_threads(1)
    return fit(Toy(), ToySettings(**job.get("settings", {})), Path(job["folder"]), resume=job.get("resume", False)).code


if __name__ == "__main__":
    try:
        with distributed():
            codes = [do(job) for job in json.loads(sys.argv[1])]
    except RegardError as error:
        print(f"{os.environ.get('RANK', 0)}: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(max(codes))
