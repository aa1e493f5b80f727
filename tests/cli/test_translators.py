"""Translators, where a command wants a model that only reads."""

import pytest

from tests.cli.run import run


@pytest.mark.parametrize("name", ["en-zh-grammar", "en-zh-grammar-recurrent"])
@pytest.mark.parametrize("command", ["see", "census"])
def test_a_translator_is_sent_to_its_own_command(monkeypatch, capsys, command, name):
    code, printed, said = run(monkeypatch, capsys, command, "The cat sat.", "--model", name)
    assert (code, printed, said.count("\n")) == (2, "", 1)
    assert f"{name} is a translator" in said
    assert f'regard translate -m {name} "…" --see' in said


def test_the_list_of_models_names_a_next_step_for_each_kind_and_the_scores_of_each_part(monkeypatch, capsys):
    printed = run(monkeypatch, capsys, "models")[1]
    assert printed.splitlines()[-3].startswith("Try one: regard translate -m en-zh ")
    assert printed.splitlines()[-2].startswith("Write with one: regard generate writer ")
    assert printed.splitlines()[-1].endswith("--model induction")
    assert "test: bleu 9" in printed
