"""The house in numbers: short files and functions, few parameters, no folders that import each other."""

import ast
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_imports import Import, imports_of, module_name

LINES_OF_A_FILE, MEDIAN_FILE = 400, 110
LINES_OF_A_FUNCTION, MOST_FUNCTIONS = 120, 30
PARAMETERS = 12
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# The interface itself: everything that decides the weights is an argument.
MANY_PARAMETERS = {
    "regard.attention.attend.attend",
    "regard.attention.reference.mechanism.attend",
    "regard.layers.multihead.MultiHead.__init__",
    "regard.trace.watch.watch",  # hints that only the caller can give: heads, layout, queries, keys
}
# Imported inside a function, or for types only, against the order of folders: (who, whom), beginnings of module names.
LAZY = [
    ("regard.attention.map", "regard.views"),
    ("regard.attention.mask", "regard.views"),
    ("regard.positions", "regard.views"),
    ("regard.trace", "regard.views"),
    # Methods of a trace and of a layer that hand themselves to what is computed from them.
    ("regard.trace.record", "regard.trace.measure"),
    ("regard.trace.record", "regard.trace.proof"),
    ("regard.trace.record", "regard.trace.file"),
    ("regard.trace.record", "regard.trace.residual"),
]


def functions(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function with its dotted name, those inside classes and functions too."""
    for child in ast.iter_child_nodes(tree):
        name = f"{prefix}.{child.name}" if isinstance(child, NAMED) else prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, child
        yield from functions(child, name)


def count_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = function.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


@pytest.fixture(scope="module")
def files(repository) -> list[Path]:
    return sorted((repository / "src/regard").rglob("*.py"))


@pytest.fixture(scope="module")
def every_function(files, repository):
    return [
        one
        for file in files
        for one in functions(ast.parse(file.read_text(encoding="utf-8")), module_name(file, repository / "src"))
    ]


def test_files_are_short(files):
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert len(lines) > 300
    assert not [f"{file}: {count}" for file, count in lines.items() if count > LINES_OF_A_FILE]
    assert statistics.median(lines.values()) <= MEDIAN_FILE


def test_functions_are_short(every_function):
    lengths = sorted((node.end_lineno - node.lineno + 1, name) for name, node in every_function)
    assert len(lengths) > 2000
    assert lengths[-1][0] <= LINES_OF_A_FUNCTION, lengths[-1]
    assert lengths[int(0.95 * len(lengths))][0] <= MOST_FUNCTIONS


def test_functions_take_few_parameters(every_function):
    many = {name for name, node in every_function if count_parameters(node) > PARAMETERS}
    assert many <= MANY_PARAMETERS, many - MANY_PARAMETERS


def folder_of(module: str, source: Path) -> str:
    """The folder that a module, or a name inside a module, lies in; how the program starts belongs to `cli`."""
    if module.startswith("regard.__main__"):
        return "regard.cli"
    path = source.joinpath(*module.split("."))
    while not path.is_dir() and not path.with_suffix(".py").is_file():
        path = path.parent
    folder = path if path.is_dir() else path.parent
    return ".".join(folder.relative_to(source).parts)


def is_listed(one: Import) -> bool:
    listed = any(one.who.startswith(who) and one.whom.startswith(whom) for who, whom in LAZY)
    return listed and (one.inside or one.typing)


def folder_cycles(source: Path) -> list[list[str]]:
    """Groups of folders of which each reaches the others by imports."""
    edges: dict[str, set[str]] = defaultdict(set)
    for file in sorted(source.rglob("*.py")):
        for one in imports_of(file, source):
            here, there = folder_of(one.who, source), folder_of(one.whom, source)
            if here != there and not is_listed(one):
                edges[here].add(there)
    reached = {folder: reach(folder, edges) for folder in edges}
    groups = {
        tuple(sorted(other for other in reached[folder] if folder in reached.get(other, ()))) for folder in reached
    }
    return sorted(list(group) for group in groups if group)


def reach(folder: str, edges: dict[str, set[str]]) -> set[str]:
    """Every folder that can be come to from this one, itself only by a way around."""
    seen: set[str] = set()
    ahead = list(edges[folder])
    while ahead:
        here = ahead.pop()
        if here not in seen:
            seen.add(here)
            ahead.extend(edges.get(here, ()))
    return seen


def test_no_folders_import_each_other(repository):
    assert folder_cycles(repository / "src") == []


@pytest.mark.parametrize("inside", [False, True])
def test_a_cycle_is_found(tmp_path, inside):
    for name, text in {
        "one/a.py": "from regard.two.b import f",
        "two/b.py": "def f():\n    from regard.three import c" if inside else "from regard.three import c",
        "three/c.py": "import regard.one.a",
    }.items():
        file = tmp_path / "regard" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    assert folder_cycles(tmp_path) == [["regard.one", "regard.three", "regard.two"]]
