"""What commands print as JSON is read back as what it was, and nothing of it acts on a terminal."""

import json
import sys
import unicodedata

import pytest

from regard.cli.harmless import acts, format_json


@pytest.mark.parametrize("indent", [None, pytest.param(1, marks=pytest.mark.slow)])
def test_every_character_is_read_back_and_none_acts(indent):
    every = "".join(chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF)
    value = {"text": every, "plain": ["a", 1.5, None]}
    text = format_json(value, indent=indent)
    assert json.loads(text) == value
    left = {one for one in set(text) if acts(one) and ord(one) < 0x10000}
    assert left == set(), [unicodedata.name(one, hex(ord(one))) for one in left]


def test_ascii_is_left_as_json_writes_it():
    value = {"a": "plain \x1b[31m \x7f", "b": [1, 2]}
    assert format_json(value) == json.dumps(value).replace("\x7f", "\\u007f")


def test_commands_print_json_by_this_function_alone(repository):
    allowed = {"harmless.py", "talk.py"}  # the latter keeps a conversation in a file
    files = sorted((repository / "src/regard/cli").glob("*.py"))
    assert len(files) > 60
    assert [file.name for file in files if "json.dumps(" in file.read_text() and file.name not in allowed] == []
