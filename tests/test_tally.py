"""The last line of `make test` says what passed, what was skipped and why, over all its parts."""

import os
import subprocess
import sys


def test_every_part_runs_and_one_line_tells_of_all(tmp_path, repository):
    for name, body in {
        "test_first.py": "def test_a(): assert False\ndef test_b(): pass\n",
        "test_second.py": (
            "import pytest\n"
            "@pytest.mark.parametrize('n', range(3))\n"
            "def test_c(n): pytest.skip('needs a telescope; buy one')\n"
            "@pytest.fixture\n"
            "def broken(): raise ValueError\n"
            "def test_d(broken): pass\n"
            "def test_e(): pytest.skip('needs rain')\n"
        ),
    }.items():
        (tmp_path / name).write_text(body)
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import pytest_terminal_summary\nimport pytest\n"
    )  # of the suite itself, nothing else is wanted
    own = ["-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path), "-q"]
    words = ["--", *own, str(tmp_path / "test_first.py"), "--", *own, str(tmp_path / "test_second.py")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.tally", *words],
        cwd=repository,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
        capture_output=True,
        text=True,
    )
    last = done.stdout.splitlines()[-1]
    wanted = "1 passed, 2 failed, 4 skipped (3: needs a telescope; buy one; 1: needs rain) in "
    assert last.startswith(wanted), done.stdout + done.stderr
    assert last.endswith(" seconds")
    assert done.returncode == 1
