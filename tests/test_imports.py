"""Imports point back along the road, and little is loaded before it is needed."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import regard

STATIONS = [
    *(
        "shapes",
        "errors",
        "extras",
        "files",
        "memory",
        "eager",
        "tokens",
        "attention",
        "positions",
        "layers",
        "models",
        "decode",
        "data",
    ),
    *("data", "training", "trace", "tasks", "views", "app", "learn", "cli"),
]
EVERYONE = STATIONS[-1]  # who says `import regard` knows everyone, as only the last station may

# A method that draws imports its view when it is called. (who, whom): both are beginnings of module names.
INSIDE_FUNCTIONS = [
    ("regard.attention.map", "regard.views"),
    ("regard.attention.mask", "regard.views"),
    ("regard.positions", "regard.views"),
    ("regard.trace", "regard.views"),
]
# Of attention, positions know only what a bias is.
ONLY = {("positions", "attention"): "regard.attention.score.bias"}


# Every public name, and the module it is imported from.
PUBLIC = regard._HOME | {name: module.rpartition(".")[0] for name, module in regard._MODULES.items()}


class Import(NamedTuple):
    """One import: who imports whom, where, and whether only when a function runs or types are checked."""

    who: str
    whom: str
    line: int
    inside: bool
    typing: bool = False


def module_name(file: Path, source: Path) -> str:
    parts = file.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(file: Path, source: Path) -> Iterator[Import]:
    """Every import of the package itself in one file, relative ones made absolute."""
    who = module_name(file, source)
    package = who if file.name == "__init__.py" else who.rpartition(".")[0]

    def walk(node: ast.AST, inside: bool, typing: bool = False) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            names: list[str] = []
            if isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom):
                up = package.split(".")[: len(package.split(".")) + 1 - child.level] if child.level else []
                start = ".".join([*up, *filter(None, [child.module])])
                names = [home(start, alias.name) for alias in child.names]
            yield from (Import(who, name, child.lineno, inside, typing) for name in names if in_package(name))
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            yield from walk(child, inside or function, typing or types)

    yield from walk(ast.parse(file.read_text(encoding="utf-8")), inside=False)


def in_package(name: str) -> bool:
    return name == "regard" or (name.startswith("regard.") and name != "regard.__version__")


def home(module: str, name: str) -> str:
    """`from regard import attend` is an import of the module that makes `attend`."""
    return f"{PUBLIC.get(name, module)}.{name}" if module == "regard" else f"{module}.{name}"


def station(module: str) -> str:
    name = [*module.split("."), EVERYONE][1]
    return "cli" if name == "__main__" else name


def forward_imports(source: Path) -> tuple[list[str], int]:
    """What points forward, one sentence each, and how many files were walked."""
    files = sorted(source.rglob("*.py"))
    faults = [
        f"{file.relative_to(source)}:{one.line}: {fault}"
        for file in files
        for one in imports_of(file, source)
        if (fault := fault_of(one))
    ]
    return faults, len(files)


def fault_of(one: Import) -> str:
    here, there = station(one.who), station(one.whom)
    unknown = {here, there} - set(STATIONS)
    if one.who == "regard":
        return f"the package itself imports {one.whom}, but names load when they are used"
    if unknown:
        return f"{unknown.pop()} is no station of the road; add it to STATIONS and ARCHITECTURE.md"
    if one.inside and any(one.who.startswith(a) and one.whom.startswith(b) for a, b in INSIDE_FUNCTIONS):
        return ""
    if STATIONS.index(there) > STATIONS.index(here):
        return f"{here} imports {one.whom}, which stands further along the road"
    only = ONLY.get((here, there), "regard")
    return "" if one.whom.startswith(only) else f"{here} may import {only}, not {one.whom}"


def test_imports_point_back_along_the_road(repository):
    faults, walked = forward_imports(repository / "src")
    print(f"walked {walked} files")
    assert walked >= 20, f"only {walked} files were found"
    assert not faults, "\n".join(faults)


ATTEND, MAP, TRACE = "attention/attend.py", "attention/map/base.py", "trace/record/trace.py"
FORWARD = [
    (ATTEND, "from regard.models import gpt", "attention imports regard.models.gpt"),
    (ATTEND, "import regard.positions.rotary", "attention imports regard.positions.rotary"),
    (ATTEND, "from ..layers import MultiHead", "attention imports regard.layers.MultiHead"),
    (ATTEND, "import regard", "attention imports regard,"),
    (ATTEND, "from regard import MultiHead", "attention imports regard.layers"),
    (ATTEND, "if TYPE_CHECKING:\n    import regard.trace", "attention imports regard.trace"),
    (MAP, "from ...views.static import figure", "attention imports regard.views.static.figure"),
    (TRACE, "def page():\n    from regard.app import page", "trace imports regard.app.page"),
    (TRACE, "class Trace:\n    from regard.views.explorer import page", "trace imports regard.views.explorer.page"),
    ("positions/alibi.py", "from regard.attention.attend import attend", "positions may import"),
    ("__init__.py", "from regard.errors import RegardError", "the package itself imports"),
    ("helpers/misc.py", "import regard.errors", "helpers is no station"),
]
BACK = [
    (MAP, "def picture():\n    from regard.views.static.figure import heatmap"),
    (ATTEND, "import torch\nfrom regard.errors import ShapeError\nfrom .map import AttentionMap"),
    ("positions/alibi.py", "from regard.attention.score.bias import Bias"),
    ("cli/main.py", "import regard\nfrom regard import __version__, attend"),
    ("__main__.py", "from regard.cli.main import main"),
]


def tree_of_one(folder: Path, file: str, text: str) -> Path:
    path = folder / "regard" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return folder


@pytest.mark.parametrize(("file", "text", "fault"), FORWARD)
def test_a_forward_import_is_caught(tmp_path, file, text, fault):
    faults, walked = forward_imports(tree_of_one(tmp_path, file, text))
    assert (len(faults), walked) == (1, 1)
    assert fault in faults[0]


@pytest.mark.parametrize(("file", "text"), BACK)
def test_what_points_back_may_be_imported(tmp_path, file, text):
    assert forward_imports(tree_of_one(tmp_path, file, text)) == ([], 1)


def loaded_by(code: str) -> set[str]:
    """The packages, standard library aside, that a fresh process has loaded after running the code."""
    script = f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split() if name not in sys.stdlib_module_names}


def test_import_regard_loads_nothing_else():
    bare = loaded_by("pass")
    assert loaded_by("import regard; dir(regard); regard.__version__") - bare == {"regard"}


def test_help_loads_neither_torch_nor_what_draws():
    heavy = {"torch", "numpy", "matplotlib", "rich", "pydantic", "jaxtyping", "tokenizers", "safetensors"}
    loaded = loaded_by(
        """
import sys
from regard.cli.main import main
sys.argv = ["regard", "--help"]
try:
    main()
except SystemExit:
    pass"""
    )
    assert "typer" in loaded
    assert not loaded & heavy


def test_attend_loads_torch_and_little_else():
    torch = loaded_by("import torch")
    ours = loaded_by("import regard; regard.attend") - torch
    assert ours <= {"regard", "jaxtyping", "wadler_lindig"}, ours


def test_the_stub_tells_type_checkers_the_same_names(repository):
    tree = ast.parse((repository / "src/regard/__init__.pyi").read_text(encoding="utf-8"))
    stub = {
        (alias.asname, node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == alias.asname
    }
    assert stub == set(PUBLIC.items())


def test_every_public_name_is_listed_and_an_unknown_one_is_refused():
    assert set(dir(regard)) == {*PUBLIC, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'attendd'"):
        _ = regard.attendd


def test_there_are_at_most_sixty_public_names():
    assert len(PUBLIC) <= 60
    folded = [name.lower() for name in regard.__all__]
    assert len(set(folded)) == len(folded), "two names differ only by case"


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_has_a_docstring_with_an_example_that_runs(name):
    assert ">>>" in (inspect.getdoc(getattr(regard, name)) or ""), f"regard.{name} has no doctest"
