"""One convention for text in every command that reads some: TEXT, - or --file, and --length to cut it."""

import io
import os
import subprocess
import sys
import threading
import tracemalloc

import pytest
import torch
import typer

from regard.cli.main import app
from regard.cli.texts import Line, count_filled, read_lines
from regard.errors import DataError, PositionError
from regard.models.context import max_tokens
from tests.cli.run import run, saved
from tests.tasks.tiny import run_of

CAT = "the cat sees A B C . the cat sees A B"
COMMANDS = {
    "see": (["see", "--model", "induction"], CAT, 4096),
    "census": (["census", "--model", "induction"], CAT, 4096),
    "translate": (["translate", "-m", "en-zh-grammar"], "The cat sat on the mat.", 1000),
}
BERT = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 7}


@pytest.fixture(params=COMMANDS)
def command(request):
    """(the words of a command without its text, a text that it reads, how many tokens its model takes)"""
    return COMMANDS[request.param]


def told(monkeypatch, capsys, *words, stdin=b""):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    return run(monkeypatch, capsys, *map(str, words))


def refused(monkeypatch, capsys, *words, stdin=b""):
    """The one sentence by which a command is refused."""
    code, printed, said = told(monkeypatch, capsys, *words, stdin=stdin)
    assert (code, printed, said.count("\n"), said[:8]) == (2, "", 1, "regard: ")
    return said


def test_a_text_a_file_and_standard_input_are_the_same(monkeypatch, capsys, tmp_path, command):
    words, text, _ = command
    (tmp_path / "text.txt").write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n")
    given = told(monkeypatch, capsys, *words, text)
    assert given[0] == 0
    assert told(monkeypatch, capsys, *words, "--file", tmp_path / "text.txt") == given
    assert told(monkeypatch, capsys, *words, "-", stdin=b"\xef\xbb\xbf" + text.encode() + b"\n") == given


def test_exactly_one_source_is_wanted(monkeypatch, capsys, tmp_path, command):
    words, text, _ = command
    (tmp_path / "text.txt").write_text(text)
    said = refused(monkeypatch, capsys, *words, stdin=text.encode())
    assert said == "regard: no text was given; give TEXT, - to read standard input, or --file PATH\n"
    for given in (text, "-"):
        said = refused(monkeypatch, capsys, *words, given, "--file", tmp_path / "text.txt", stdin=text.encode())
        assert "were given; give one of them" in said


def test_a_text_that_is_also_a_file_is_read_as_text_and_the_file_is_mentioned(monkeypatch, capsys, tmp_path, command):
    words, text, _ = command
    name = text.split()[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("other words")
    code, printed, said = told(monkeypatch, capsys, *words, name)
    assert (code, bool(printed)) == (0, True)
    assert said == f"'{name}' is read as text, but there is also a file of that name; to read the file: --file {name}\n"


BAD = {
    "missing": (None, "there is no file"),
    "a folder": (..., "cannot be read (Is a directory)"),
    "empty": (b"", "no"),
    "blank": (b" \n\n", "no"),
    "NUL": (b"the cat\nsat\0on", "line 2: byte 11 is NUL, which no text has"),
    "binary": (b"\x89PNG\r\n\x1a\n\xff\xd8", "is no UTF-8"),
    "UTF-16": ("the cat".encode("utf-16"), "is a UTF-16 file, but UTF-8 text was wanted"),
    "Latin-1": ("café".encode("latin-1"), "line 1: byte 3 (0xe9) is no UTF-8"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_is_no_text_is_refused(monkeypatch, capsys, tmp_path, command, kind):
    content, sentence = BAD[kind]
    file = tmp_path / "file.txt"
    if kind == "blank" and command[0][0] == "translate":  # a blank line is translated by a blank line
        file.write_bytes(content)
        assert run(monkeypatch, capsys, *command[0], "--file", str(file))[:2] == (0, "\n\n")
        return
    if content is ...:
        file.mkdir()
    elif content is not None:
        file.write_bytes(content)
    assert sentence in refused(monkeypatch, capsys, *command[0], "--file", file)


@pytest.mark.parametrize("kind", ["empty", "NUL", "binary", "UTF-16", "Latin-1"])
def test_standard_input_that_is_no_text_is_refused(monkeypatch, capsys, command, kind):
    content = BAD[kind][0] if kind != "NUL" else b"A\0B"
    refused(monkeypatch, capsys, *command[0], "-", stdin=content)


def test_no_standard_input_at_all_is_refused(monkeypatch, capsys, command):
    monkeypatch.setattr(sys, "stdin", None)
    code, printed, said = run(monkeypatch, capsys, *command[0], "-")
    assert (code, printed, said.count("\n")) == (2, "", 1)
    assert "there is no standard input" in said


def test_more_tokens_than_the_model_takes_is_one_sentence_with_both_numbers(monkeypatch, capsys, command):
    words, text, limit = command
    word = text.split()[1]
    said = refused(monkeypatch, capsys, *words, f"{word} " * (limit + 1))
    assert (
        f"the text has {limit + 1:,} tokens, but the model takes at most {limit:,}; truncate it with --length {limit}"
        in said
    )


def test_length_cuts_and_says_so(monkeypatch, capsys, command):
    words, text, _ = command
    first = " ".join(text.split()[:3])
    whole = told(monkeypatch, capsys, *words, first)
    code, printed, said = told(monkeypatch, capsys, *words, text, "--length", 3)
    assert (code, printed) == (0, whole[1])
    assert f"the text: truncated to the first 3 of {len(text.replace('.', ' .').split())} tokens (--length 3)\n" in said
    assert told(monkeypatch, capsys, *words, text, "--length", 500) == told(monkeypatch, capsys, *words, text)


def test_a_million_characters_are_refused_or_cut(monkeypatch, capsys, command):
    words, text, _ = command
    word = text.split()[1]
    many = f"{word} " * (1_000_000 // (len(word) + 1))
    assert "truncate it with --length" in refused(monkeypatch, capsys, *words, "-", stdin=many.encode())
    assert told(monkeypatch, capsys, *words, "-", "--length", 7, stdin=many.encode())[0] == 0


# Models of the transformers library


def kinds():
    import transformers as t

    gpt = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 30, "bos_token_id": 1, "eos_token_id": None}
    roberta = {"max_position_embeddings": 24, "pad_token_id": 3, "bos_token_id": 0, "eos_token_id": 2}
    opt = {"hidden_size": 12, "ffn_dim": 7, "num_hidden_layers": 2, "num_attention_heads": 3}
    opt |= {"max_position_embeddings": 26, "word_embed_proj_dim": 12, "pad_token_id": 0}
    return {
        "bert": (t.BertModel, t.BertConfig, BERT | {"max_position_embeddings": 20}, 20),
        "gpt2": (t.GPT2LMHeadModel, t.GPT2Config, gpt, 30),
        "roberta": (t.RobertaModel, t.RobertaConfig, BERT | roberta, 20),  # its first four positions are not used
        "opt": (t.OPTForCausalLM, t.OPTConfig, opt, 26),
    }


@pytest.mark.parametrize("kind", ["bert", "gpt2", "roberta", "opt"])
def test_a_model_of_transformers_takes_exactly_as_many_tokens_as_it_is_said_to(monkeypatch, capsys, tmp_path, kind):
    model_class, config, sizes, limit = kinds()[kind]
    folder = saved(tmp_path, model_class, config, **sizes)
    from regard.models.open.open_model import open_model

    model, tokenizer = open_model(folder)
    assert max_tokens(model, tokenizer) == limit
    ids = torch.full((1, limit), 5)
    model(ids)  # takes so many, and one more is too much
    with pytest.raises((IndexError, RuntimeError, PositionError)):
        model(torch.cat([ids, ids[:, :1]], 1))
    capsys.readouterr()
    words = ["see", "--model", folder]
    said = told(monkeypatch, capsys, *words, "cat " * (limit - 1))[2].splitlines()[-1]
    assert said.endswith(
        f"the text has {limit + 1} tokens, but the model takes at most {limit}; truncate it with --length {limit}"
    )
    assert told(monkeypatch, capsys, *words, "cat " * (limit - 2))[0] == 0
    code, printed, said = told(monkeypatch, capsys, *words, "cat " * 50, "--length", limit, "--layer", 0, "--head", 0)
    assert code == 0
    assert "[SEP]" in printed  # what stands around a text stays around it
    assert f"the first {limit} of 52 tokens (--length {limit})" in said


def test_a_model_that_fails_all_the_same_is_told_in_one_sentence(monkeypatch, capsys, tmp_path):
    from transformers import BertConfig, BertModel

    folder = saved(tmp_path, BertModel, BertConfig, **BERT)
    monkeypatch.setattr("regard.models.bert.Bert.forward", lambda *_, **__: [][7])
    said = told(monkeypatch, capsys, "see", "the cat", "--model", folder)[2].splitlines()[-1]
    assert said.startswith("regard: the model failed on 4 tokens: IndexError: list index out of range")


def test_our_own_translator_cuts_at_its_tokens(monkeypatch, capsys):
    text = "My friend bought two books yesterday."
    code, printed, said = told(monkeypatch, capsys, "translate", "-m", run_of(), text, "--length", 2, "--json")
    assert code == 0
    assert '"source": "My fr"' in printed
    assert '"read": ["My", "fr", "<eos>"]' in printed
    assert said.startswith("the text: truncated to the first 2 of ")


# Help


def every_command():
    return [[], *([name] for name in typer.main.get_command(app).commands)]


@pytest.mark.parametrize("words", every_command(), ids=lambda words: " ".join(words) or "regard")
def test_h_is_help(monkeypatch, capsys, words):
    code, printed, said = run(monkeypatch, capsys, *words, "-h")
    assert (code, said) == (0, "")
    assert printed.startswith("Usage: regard")
    assert (code, printed, said) == run(monkeypatch, capsys, *words, "--help")


def test_help_loads_nothing_heavy():
    program = (
        "import sys; sys.argv = ['regard', 'see', '-h']\nfrom regard.cli.main import main\n"
        "try:\n    main()\nfinally:\n    assert not {'torch', 'numpy', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "99"}
    )
    assert done.returncode == 0, done.stderr


def test_a_file_of_lines_is_checked_whole_and_never_held(tmp_path):
    file = tmp_path / "many.txt"
    file.write_text("a cat\n\n" * 200_000)
    tracemalloc.start()
    lines = read_lines([], file)
    assert (count_filled(lines), sum(1 for line in lines if line.blank)) == (200_000, 200_000)
    assert next(iter(lines)) == next(iter(lines)) == Line("a cat", f"{file}, line 1")  # from its beginning each time
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000
    file.write_bytes(b"a cat\n" * 9 + b"\xff\n")
    with pytest.raises(DataError, match=r"many\.txt, line 10: byte 54 \(0xff\) is no UTF-8"):
        read_lines([], file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes, which this system has not")
def test_lines_of_a_pipe_are_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("one\ntwo\n",), daemon=True)
    writer.start()
    assert [line.text for line in read_lines([], pipe)] == ["one", "two"]
