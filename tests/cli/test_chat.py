"""`regard chat`: turns through a pipe, its few commands, and models that were not made for it."""

import io
import json
import sys

import pytest

import regard
from regard.cli import talk
from tests.cli.run import run
from tests.cli.small_chat import save_llama


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("llama"))


def chat(monkeypatch, capsys, lines, *words):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("".join(f"{line}\n" for line in lines).encode())))
    return run(monkeypatch, capsys, "chat", *map(str, words))


def test_turns_through_a_pipe_are_those_of_python(monkeypatch, capsys, llama, tmp_path):
    to = tmp_path / "talk.json"
    code, _, err = chat(monkeypatch, capsys, ["hi", "", "why, 猫?", f"/save {to}"], llama, "--max-tokens", 7)
    assert code == 0
    talked = regard.open_writer(llama).chat(max_tokens=7)
    talked.send("hi")
    talked.send("why, 猫?")
    assert json.loads(to.read_text(encoding="utf-8")) == talked.messages
    assert err == f"regard: wrote {to}\n"


def test_commands_forget_and_set_the_system_message(monkeypatch, capsys, llama, tmp_path):
    to = tmp_path / "talk.json"
    lines = ["hi", "/system be brief", "ho", f"/save {to}", "/reset", "/help", "/what"]
    code, _, err = chat(monkeypatch, capsys, lines, llama, "--max-tokens", 3)
    assert code == 0
    assert [turn["content"] for turn in json.loads(to.read_text(encoding="utf-8"))][:2] == ["be brief", "ho"]
    assert "/reset          forget the conversation" in err
    assert "regard: '/what' is no command here; there are" in err


def test_a_turn_that_cannot_be_answered_is_told_and_the_conversation_goes_on(monkeypatch, capsys, llama):
    code, out, err = chat(monkeypatch, capsys, ["x" * 400, "hi"], llama, "--max-tokens", 3)
    assert (code, out.count("\n") >= 1) == (0, True)
    assert "tokens, but" in err
    assert "takes at most 300" in err


def test_an_answer_that_is_interrupted_stays_as_it_is(monkeypatch, capsys, llama):
    talked = regard.open_writer(llama).chat(max_tokens=50)
    shown = []

    def interrupt(self, text, style=""):
        shown.append(text)
        if len(shown) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(talk.TokenPrinter, "show", interrupt)
    talk.answer(talked, "hi")
    assert talked.messages[-1]["content"] == "".join(shown[:3])


def test_a_model_without_a_template_says_so(monkeypatch, capsys):
    code, out, err = chat(monkeypatch, capsys, ["hi"], "induction")
    assert (code, out) == (2, "")
    assert err.startswith("regard: induction has no chat template, so it was not made for conversations")
