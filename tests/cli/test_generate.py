"""`regard generate`: one prompt token by token, many side by side, and what is wrong in one sentence."""

import io
import json
import re
import shutil
import sys

import pytest

import regard
from regard.cli.harmless import escape_json, make_harmless
from regard.cli.option_groups import with_option_groups
from regard.cli.write_texts import split_words
from regard.errors import ConfigError
from tests.cli.run import run
from tests.cli.small_chat import save_llama

PROMPT = "the cat sees A B C . the"


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("llama"))


def generate(monkeypatch, capsys, *words):
    return run(monkeypatch, capsys, "generate", *map(str, words))


def test_a_prompt_is_written_on_and_a_line_says_how_quickly(monkeypatch, capsys):
    code, out, err = generate(monkeypatch, capsys, "induction", PROMPT, "--max-tokens", 5)
    assert (code, out) == (0, f"{PROMPT} cat sees A B C\n")
    assert re.fullmatch(
        r"regard: 5 tokens, the first after \d+\.\d\d s, then \d+\.\d tokens/s; engine \w+, \d+ threads\n", err
    )


@pytest.mark.parametrize("words", [("-m", "induction", PROMPT), (PROMPT, "--model", "induction")])
def test_the_model_may_be_an_option(monkeypatch, capsys, words):
    assert generate(monkeypatch, capsys, *words, "--max-tokens", 2)[1] == f"{PROMPT} cat sees\n"


def test_words_are_a_model_and_a_prompt(tmp_path):
    assert split_words(["A man"], None, None) == ("writer", ["A man"])
    assert split_words(["m", "A man"], None, None) == ("m", ["A man"])
    assert split_words(["A man"], "m", None) == ("m", ["A man"])
    assert split_words(["m"], None, tmp_path / "x") == ("m", [])
    assert split_words([], None, tmp_path / "x") == ("writer", [])
    for words, sentence in (
        (["induction"], "'induction' is a model, and no prompt came after it"),
        ([str(tmp_path)], "is a model, and no prompt came after it"),
        (["m", "A", "man"], "3 words came, but one model and one prompt were wanted"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            split_words(words, None, None)


def test_json_holds_what_python_gives(monkeypatch, capsys, llama):
    how = {"max_tokens": 9, "temperature": 1.5, "top_k": 50, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.2}
    flags = [word for name, value in how.items() for word in ("--" + name.replace("_", "-"), value)]
    code, out, _ = generate(monkeypatch, capsys, llama, "猫 x", *flags, "--seed", 3, "--json")
    record = json.loads(out)
    written = regard.open_writer(llama).generate("猫 x", **how, seed=3)
    assert code == 0
    assert record == {
        "prompt": "猫 x", "text": written.text, "tokens": len(written.ids), "log_prob": pytest.approx(written.log_prob),
        "stopped": written.stopped, "seed": 3, "ids": written.ids, "log_probs": pytest.approx(written.log_probs),
    }  # fmt: skip


def test_stop_strings_and_beams(monkeypatch, capsys):
    code, out, _ = generate(monkeypatch, capsys, "induction", PROMPT, "--stop", " B", "--stop", "zebra")
    assert (code, out) == (0, f"{PROMPT} cat sees A\n")
    code, out, _ = generate(monkeypatch, capsys, "induction", PROMPT, "--beams", 3, "--max-tokens", 3)
    assert (code, out) == (0, f"{PROMPT} cat sees A\n")


def test_many_prompts_give_a_line_each(monkeypatch, capsys, llama, tmp_path):
    lines = ["one", "", "two words", "猫", "a longer prompt than the others"]
    (tmp_path / "prompts.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, out, err = generate(
        monkeypatch, capsys, llama, "--file", tmp_path / "prompts.txt", "--max-tokens", 6, "--json"
    )
    records = [json.loads(line) for line in out.splitlines()]
    assert (code, [record["prompt"] for record in records]) == (0, lines)
    assert "tokens/s" in err
    writer = regard.open_writer(llama)
    for record in records:
        assert record["text"] == ("" if not record["prompt"] else writer.generate(record["prompt"], max_tokens=6).text)
    code, out, _ = generate(monkeypatch, capsys, llama, "--file", tmp_path / "prompts.txt", "--max-tokens", 6)
    assert (code, len(out.split("\n"))) == (0, len(lines) + 1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A B A\nthe cat the\n")))
    code, out, _ = generate(monkeypatch, capsys, "induction", "-", "--max-tokens", 2)
    assert (code, out) == (0, "A B A B A\nthe cat the cat the\n")


def test_probabilities_are_listed_with_what_else_could_come(monkeypatch, capsys):
    code, out, _ = generate(monkeypatch, capsys, "induction", PROMPT, "--max-tokens", 2, "--probs")
    text, *lines = out.splitlines()
    assert (code, text) == (0, f"{PROMPT} cat sees")
    assert re.fullmatch(r"cat +0\.999   (\S+ 0\.\d{3}, ){3}\S+ 0\.\d{3}", lines[0])
    assert "\x1b" not in out
    _, out, _ = generate(monkeypatch, capsys, "induction", PROMPT, "--max-tokens", 2, "--probs", "--json")
    assert [row[0]["token"] for row in json.loads(out)["alternatives"]] == ["cat", "sees"]


def test_colours_come_on_a_terminal_unless_unwanted(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in generate(monkeypatch, capsys, "induction", PROMPT, "--max-tokens", 2, "--probs")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in generate(monkeypatch, capsys, "induction", PROMPT, "--max-tokens", 2, "--probs")[1]


def test_what_the_model_looked_at_is_shown_for_each_token(monkeypatch, capsys, tmp_path):
    to = tmp_path / "map.trace"
    code, out, err = generate(monkeypatch, capsys, "induction", PROMPT, "--max-tokens", 3, "--see", "--to", to)
    assert code == 0
    assert out.splitlines()[1].startswith("sees         ← sees#2 1.00")
    assert out.splitlines()[-1] == f"{PROMPT} cat sees A"
    assert "engine plain" in err
    assert regard.load(to).layers[-1].weights.shape[-2:] == (11, 11)


def test_a_prompt_can_be_a_message(monkeypatch, capsys, llama):
    code, out, _ = generate(
        monkeypatch, capsys, llama, "hi", "--chat", "--system", "be brief", "--max-tokens", 5, "--json"
    )
    assert code == 0
    chat = regard.open_writer(llama).chat("be brief", max_tokens=5)
    assert json.loads(out)["text"] == chat.send("hi").text


def test_a_full_context_is_told_with_what_goes_on(monkeypatch, capsys, llama):
    code, _, err = generate(monkeypatch, capsys, llama, "x" * 297, "--max-tokens", 20, "--json")
    assert code == 0
    assert re.search(
        r"stopped because the 300 tokens that \S+ takes are full; go on without an end with --window N", err
    )
    code, out, _ = generate(
        monkeypatch,
        capsys,
        llama,
        "x" * 297,
        "--max-tokens",
        20,
        "--json",
        "--window",
        16,
        "--sinks",
        2,
        "--stop",
        "\0no",
    )
    assert (code, json.loads(out)["stopped"] in ("length", "end")) == (0, True)


def test_control_characters_of_a_model_do_nothing_to_the_terminal():
    assert make_harmless("a\x1b]0;title\x07b\r\x9b1m\u2028") == "a␛]0;title␇b␍⟨U+009B⟩1m⟨U+2028⟩"
    assert make_harmless("猫\t🐈‍⬛\nplain") == "猫\t🐈‍⬛\nplain"
    every = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066]))
    assert json.loads(escape_json(json.dumps(every, ensure_ascii=False))) == every
    assert not set(escape_json(json.dumps(every, ensure_ascii=False))) & set(every[:9] + every[33:])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["induction", ""], "the prompt is empty, so there is nothing to go on from"),
        (["induction", "A", "--temperature", "-1"], "temperature is -1.0, but it divides the logits"),
        (["induction", "A", "--beams", "0"], "beams is 0, but a search keeps at least one text"),
        (["induction", "A", "--top-p", "2"], "top_p is 2.0, but it is a probability"),
        (["induction", "A", "--engine", "steam"], "engine is 'steam'; choose one of"),
        (["induction", "A " * 300], "the prompt has 300 tokens, but induction takes at most 256"),
        (["induction", "A", "--chat"], "induction has no chat template"),
        (["induction", "A", "--system", "x"], "--system begins a conversation"),
        (["induction", "A", "--beams", "2", "--see"], "--see follows one text token by token, but a search"),
        (["induction", "A", "--to", "map.docx"], "'map.docx' ends in none of"),
        (["en-zh-grammar", "A"], "en-zh-grammar is a translator"),
        (["nowhere.gguf", "A"], "'nowhere.gguf' is neither an embedded model"),
        (["-m", "induction"], "no text was given"),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(monkeypatch, capsys, words, sentence):
    code, out, err = generate(monkeypatch, capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"regard: {sentence}")
    assert err.count("\n") == 1


def test_a_group_of_options_keeps_types_and_defaults():
    from dataclasses import dataclass

    @dataclass
    class Sizes:
        width: int = 3

    calls = []

    @with_option_groups
    def build(sizes: Sizes, name: str = "x") -> None:
        """Build."""
        calls.append((sizes, name))

    build(width=5, name="y")
    assert calls == [(Sizes(5), "y")]
    assert build.__doc__ == "Build."


def test_a_model_that_ours_cannot_be_writes_by_transformers_and_it_is_said(monkeypatch, capsys, llama, tmp_path):
    pytest.importorskip("transformers", reason="needs transformers: pip install 'regard[hf]'")
    folder = tmp_path / "yarn"
    shutil.copytree(llama, folder)
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"] = {
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    code, out, err = generate(monkeypatch, capsys, folder, "Hello", "--max-tokens", 3)
    assert code == 0, err
    assert out.startswith("Hello")
    assert "is no model of ours, so transformers itself runs it: the config has rope_type='yarn'" in err
    with pytest.raises(regard.errors.ModelError, match="open it with ours=False"):
        regard.open_writer(folder)
