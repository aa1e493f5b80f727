"""What the package stands on: pages that run, examples that run, commands that do what they say."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCED = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_page(text: str, name: str) -> int:
    """Run every Python block in one namespace; those with >>> must also say what comes out."""
    names: dict[str, object] = {}
    blocks = list(FENCED.finditer(text))
    for block in blocks:
        code, line = block[1], text.count("\n", 0, block.start(1))
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, names, name, name, line)
            runner = doctest.DebugRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
            runner.run(test, clear_globs=False)
            names.update(test.globs)
        else:
            exec(compile("\n" * line + code, name, "exec"), names)
    return len(blocks)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_on_a_page_runs_and_says_the_truth(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        run_page(page.read_text(encoding="utf-8"), str(page))
    except doctest.DocTestFailure as failure:
        wanted, got = failure.example.want, failure.got
        line = (failure.test.lineno or 0) + failure.example.lineno + 1
        pytest.fail(f"{page.name}:{line}\n{failure.example.source}wanted\n{wanted}got\n{got}")
    except doctest.UnexpectedException as failure:
        raise failure.exc_info[1] from None


def test_there_are_pages_with_python_on_them():
    with_python = [page for page in PAGES if FENCED.search(page.read_text(encoding="utf-8"))]
    print(f"{len(with_python)} of {len(PAGES)} pages")
    assert len(with_python) >= 4


def test_a_page_that_is_wrong_is_caught():
    with pytest.raises(doctest.DocTestFailure):
        run_page("```python\nx = 1\n```\n\n```python\n>>> x + 1\n3\n```\n", "wrong.md")
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", "wrong.md")


def test_the_chinese_readme_says_what_the_english_one_says():
    """The same code and commands (but for comments), headings, rows, links and pictures, in the same order."""

    def bones(name: str) -> dict[str, list[str]]:
        text = (ROOT / name).read_text(encoding="utf-8")
        code = re.findall(r"^```python\n(?:.*\n)*?```|^    \S.*$", text, re.MULTILINE)
        table = [line for line in text.splitlines() if line.startswith("| ")]
        return {
            "code": [re.sub(r" *# .*", "", block) for block in code],
            "headings": [line.split(" ")[0] for line in re.findall(r"^#+ .*", text, re.MULTILINE)],
            "rows": [" ".join(re.findall(r"`[^`]+`", row)) for row in table],
            "links": sorted(set(re.findall(r"\]\(([^)#]+)\)", text)) - {"README.md", "README.zh-CN.md"}),
        }

    ours, theirs = bones("README.md"), bones("README.zh-CN.md")
    assert len(ours["code"]) >= 8
    assert len(ours["links"]) >= 11
    assert theirs == ours


def test_links_between_pages_lead_somewhere():
    links = [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        if not target.startswith("http")
    ]
    assert len(links) >= 5
    assert [f"{page.name} → {target}" for page, target in links if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs(example, tmp_path):
    environment = os.environ | {"MPLBACKEND": "Agg"}
    subprocess.run([sys.executable, example], cwd=tmp_path, env=environment, check=True)


def test_there_are_examples():
    assert len(EXAMPLES) >= 1


def make(*words: str) -> str:
    return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_make_help_names_every_command():
    said = make("help")
    for name in ["demo", "test", "check", "check-slow", "bench", "setup"]:
        assert f"make {name} " in said


def test_make_test_runs_style_types_and_both_kinds_of_tests():
    planned = make("--dry-run", "test")
    for part in ["ruff check", "ruff format --check", "mypy", "--jaxtyping-packages=regard", "-m compiled"]:
        assert part in planned


def test_debian_packages_are_named_before_they_are_asked_for_and_can_be_left_out(tmp_path):
    """A machine that has nothing: its commands are stand-ins that only say how they were called."""
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    made = tmp_path / ".venv"
    (made / "bin").mkdir(parents=True)
    for stamp in (".made", ".core", ".all"):
        (made / stamp).touch()
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    here = tmp_path / "commands"
    here.mkdir()
    for place, body in {
        made / "bin/python": "echo fonts-noto-cjk",
        here / "timeout": 'shift 3; echo asked for: "$@" >> asked; exit 0',
        here / "fc-list": "true",
    }.items():
        place.write_text(f"#!/bin/sh\n{body}\n")
        place.chmod(0o755)
    for name in ("sh", "id", "grep", "touch", "make", "awk", "find", "env", "sudo"):
        real = shutil.which(name)
        if real:
            (here / name).symlink_to(real)
    command = [shutil.which("make"), "--no-print-directory", ".venv/.system"]
    environment = {"PATH": str(here)}
    done = subprocess.run([*command, "APT=no"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "not installed, so tests are skipped or show boxes: fonts-noto-cjk chromium" in done.stdout, done.stderr
    assert not (tmp_path / "asked").exists()
    (made / ".system").unlink()
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "asking apt-get for what the browser tests and pictures want" in done.stdout, done.stderr
    wanted = "fonts-noto-cjk chromium fonts-noto-color-emoji"
    assert wanted in done.stdout
    assert (tmp_path / "asked").read_text().split("\n")[0].endswith(f"apt-get install -y {wanted}")


def test_an_old_python_is_refused_in_one_sentence(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    done = subprocess.run(["make", "demo", "PYTHON=false"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "regard needs Python 3.11 or newer, but false is older or missing" in done.stderr


def test_ci_runs_make_test():
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    assert script.read_text().rstrip().endswith("exec make test")


def test_shapes_are_checked_while_tests_run(request):
    if not request.config.getoption("--jaxtyping-packages"):
        pytest.skip("needs --jaxtyping-packages=regard,beartype.beartype, as `make check` gives")
    from jaxtyping import TypeCheckError

    from regard.attention import reference

    with pytest.raises(TypeCheckError):
        reference.dot_scores([[1.0]], [[1.0]])


@pytest.mark.compiled
def test_compiled_tests_see_plain_functions():
    from regard.attention import reference

    assert not hasattr(reference.dot_scores, "__wrapped__")
