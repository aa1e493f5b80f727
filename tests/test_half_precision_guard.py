"""No test computes in bfloat16 or under autocast in the test process: on some processors that ends the process.

Whatever names them must run in a child process (`tests.child.in_child`, or code in a string that a child is given),
or stand in the list below with the reason why it multiplies nothing in bfloat16.
"""

import ast
import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WORDS = {"bfloat16", "autocast", "bf16"}
STORED = "numbers are stored in it; maps are multiplied in float32"
CAST = "element by element, no product"
ALLOWED = {
    ("tests/attention/test_weigh.py", "test_huge_scores_stay_finite_in_every_precision"): "softmax, no product",
    ("tests/attention/test_weigh.py", "test_half_precision_is_rounded_once_at_the_end"): "softmax, no product",
    ("tests/decode/test_beam.py", "test_half_precision_logits_are_scored_in_float32"): "log-softmax, no product",
    ("tests/layers/test_cache.py", "test_moving_to_another_dtype_moves_what_is_held"): "on the meta device",
    ("tests/layers/test_dropout.py", "test_gradients_pass_where_numbers_passed"): CAST,
    ("tests/models/open/test_open_model.py", "test_the_tokenizer_comes_along_where_there_is_one_and_the_dtype_stays"): (
        "loaded"
    ),
    ("tests/positions/test_alibi.py", "test_learned_slopes_start_where_the_fixed_ones_stand"): CAST,
    ("tests/positions/test_learned.py", "test_what_comes_out_has_the_dtype_of_x"): CAST,
    ("tests/positions/test_positions_compiled.py", "test_rotary_compiles_in_bfloat16_and_gives_gradients"): CAST,
    ("tests/positions/test_rotary.py", "test_an_offset_is_a_slice_of_the_whole_and_a_tensor_says_the_same"): CAST,
    ("tests/positions/test_rotary.py", "test_autocast_leaves_dtype_and_numbers_alone"): CAST,
    ("tests/positions/test_rotary.py", "test_casting_the_module_does_not_change_its_tables"): CAST,
    ("tests/positions/test_rotary.py", "test_untouched_channels_pass_bit_for_bit"): CAST,
    ("tests/positions/test_sinusoid.py", "test_an_offset_is_a_slice_of_the_whole_and_a_tensor_says_the_same"): CAST,
    ("tests/positions/test_sinusoid.py", "test_casting_the_module_does_not_change_its_table"): CAST,
    (
        "tests/tasks/test_text_writer.py",
        "test_half_precision_is_computed_in_float32",
    ): "computed in float32",
    ("tests/test_half_precision_guard.py", ""): "names what it looks for",
    ("tests/trace/file/test_file.py", ""): STORED,
    ("tests/trace/file/test_fingerprint.py", "test_every_kind_of_number_counts"): "only its bytes are read",
    (
        "tests/trace/record/test_compact.py",
        "test_what_depends_on_the_distance_becomes_diagonals",
    ): "a bias is compared",
    ("tests/trace/measure/test_gradient.py", "test_half_precision_is_summed_in_single"): STORED,
    ("tests/trace/measure/test_measure.py", "test_grouped_heads_learned_sinks_and_half_precision_are_measured_alike"): (
        STORED
    ),
    ("tests/trace/test_half_precision.py", ""): "the file itself is the program that a child process runs",
    (
        "tests/trace/test_in_your_code.py",
        "test_what_is_kept_in_another_dtype_is_the_map_of_the_rounded_numbers",
    ): STORED,
    ("tests/trace/record/test_weights.py", "test_arrays_of_jax_are_read"): STORED,
    ("tests/trace/record/test_weights.py", "test_brain_floats_of_numpy_are_read_bit_for_bit"): STORED,
    ("tests/trace/record/test_weights.py", "test_half_precision_has_its_own_tolerance"): STORED,
    ("tests/views/explorer/held_traces.py", "kinds"): STORED,
    ("tests/views/static/test_figure.py", "test_any_kind_of_numbers_gives_the_same_picture"): "drawn",
    ("tests/views/explorer/test_page.py", "test_two_bytes_a_number_are_never_rounded"): STORED,
}


def names(node: ast.AST) -> bool:
    """Whether this very node names bfloat16 or autocast: an attribute, a name, an import, or a dtype as a string."""
    words = [getattr(node, "attr", None), getattr(node, "id", None), getattr(node, "name", None)]
    if isinstance(node, ast.FunctionDef):
        return False
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        words.append(node.value.removeprefix("torch."))
    return any(word in WORDS for word in words)


def in_child(function: ast.FunctionDef) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == "in_child" for mark in function.decorator_list)


def found_in(source: str) -> Iterator[tuple[str, int]]:
    """(top-level function or "", line) of each place in a file that names them and does not run in a child."""
    for part in ast.parse(source).body:
        function = part if isinstance(part, ast.FunctionDef) else None
        if function is not None and in_child(function):
            continue
        for node in ast.walk(part):
            if names(node):
                yield "" if function is None else function.name, getattr(node, "lineno", 0)


def programs() -> Iterator[tuple[str, str]]:
    """(file, Python) of all that tests run: test files, examples, doctests, and pages."""
    for folder in ("tests", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")
    parser = doctest.DocTestParser()
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text("utf-8")
        if any(word in text for word in WORDS):
            code = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
            told = [part.source for doc in code if isinstance(doc, str) for part in parser.get_examples(doc)]
            yield str(path.relative_to(ROOT)), "\n".join(told)
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        blocks = re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)
        for block in blocks:
            told = "".join(part.source for part in parser.get_examples(block)) if ">>>" in block else block
            yield str(path.relative_to(ROOT)), told


def allowed(file: str, function: str) -> bool:
    return (file, function) in ALLOWED or (file, "") in ALLOWED


def test_no_test_computes_in_bfloat16_in_the_test_process():
    files, wrong, used = 0, [], set()
    for file, source in programs():
        files += 1
        for function, line in found_in(source):
            used |= {(file, function), (file, "")} & ALLOWED.keys()
            if not allowed(file, function):
                wrong.append(f"{file}:{line} {function}")
    assert files > 300
    assert not wrong, "put @in_child (tests/child.py) on these, or list them here with a reason: " + ", ".join(wrong)
    assert used == ALLOWED.keys(), f"no longer there: {ALLOWED.keys() - used}"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def test_a():\n    x = torch.ones(2, 2).bfloat16()\n", 1),
        ("def test_a():\n    with torch.autocast('cpu'):\n        pass\n", 1),
        ("from torch import bfloat16\n", 1),
        ("def test_a():\n    model.to(getattr(torch, 'bfloat16'))\n", 1),
        ("@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])\ndef test_a(dtype): ...\n", 1),
        ("CODE = '''\nx = torch.ones(2).bfloat16()\n'''\ndef test_a():\n    run(CODE)\n", 0),
        ("@pytest.mark.parametrize('dtype', [torch.bfloat16])\n@in_child\ndef test_a(dtype): ...\n", 0),
        ("def test_a():\n    x = torch.ones(2).half()\n", 0),
    ],
)
def test_the_guard_sees_what_it_must(source, found):
    assert len(list(found_in(source))) == found
