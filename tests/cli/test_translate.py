"""`regard translate` and `regard evaluate` as a user meets them: texts, files, pipes, pages, and bad input."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import numpy as np
import pytest

from regard.models import embedded
from regard.tasks.text_translator import open_translator
from regard.trace.file import load
from regard.views.explorer.bundle import read_bundle
from tests.cli.run import run
from tests.tasks.tiny import copied, run_of

CAT, DOGS = "The cat sat on the mat.", "Two dogs are sleeping."


def wanted(*texts, beams=5, kind="transformer"):
    """What the translator says by itself."""
    opened = open_translator(run_of(kind))
    return [one.text for text in texts for one in opened.translate([text], beams=beams)]


def translate(monkeypatch, capsys, *words, where=None, stdin=None):
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        words = words if "--file" in words or "-" in words else ("-", *words)
    return run(monkeypatch, capsys, "translate", "-m", str(where or run_of()), *map(str, words))


# What comes in


@pytest.mark.parametrize("kind", ["transformer", "recurrent", "none"])
def test_texts_come_out_translated_a_line_each(monkeypatch, capsys, kind):
    code, printed, said = translate(monkeypatch, capsys, CAT, DOGS, where=run_of(kind))
    assert (code, said) == (0, "")
    assert printed.split("\n") == [*wanted(CAT, DOGS, kind=kind), ""]


@pytest.mark.parametrize("beams", [1, 3])
def test_beams_are_as_asked(monkeypatch, capsys, beams):
    assert translate(monkeypatch, capsys, CAT, "--beams", beams)[1].split("\n")[0] == wanted(CAT, beams=beams)[0]


def test_the_embedded_translators_open_by_their_names(monkeypatch, capsys):
    for name in ("en-zh-grammar", "en-zh-grammar-recurrent"):
        assert translate(monkeypatch, capsys, CAT, where=name)[:2] == (0, "猫坐在垫子上。\n")


LINES = f"\n{CAT}\r\n\n  \n{DOGS} \u2028 \x0c Two.\n{DOGS}"  # only a line feed ends a line


@pytest.mark.parametrize("way", ["file", "dash"])
def test_a_line_comes_out_for_every_line_that_came(monkeypatch, capsys, tmp_path, way):
    (tmp_path / "lines.txt").write_bytes(LINES.encode())
    words = {"file": ["--file", tmp_path / "lines.txt"], "dash": ["-"]}[way]
    code, printed, said = translate(monkeypatch, capsys, *words, "--beams", 1, stdin=LINES.encode("utf-8-sig"))
    assert (code, said) == (0, "")
    first, *rest = wanted(CAT, DOGS + " \u2028 \x0c Two.", DOGS, beams=1)
    assert printed.split("\n") == ["", first, "", "", *rest, ""]


def test_a_long_file_keeps_its_order(monkeypatch, capsys, tmp_path):
    texts = [CAT if i % 3 else "" if i % 2 else DOGS for i in range(131)]
    (tmp_path / "long.txt").write_text("\n".join(texts))
    code, printed, _ = translate(
        monkeypatch, capsys, "--file", tmp_path / "long.txt", "--beams", 1, where="en-zh-grammar"
    )
    known = dict(
        zip((CAT, DOGS, ""), [one.text for one in open_translator("en-zh-grammar").translate([CAT, DOGS])] + [""])
    )
    assert (code, printed.split("\n")) == (0, [known[text] for text in texts] + [""])


def test_a_line_is_answered_before_the_next_one_is_sent():
    words = [sys.executable, "-m", "regard", "translate", "-m", str(run_of()), "-", "--beams", "1"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    with subprocess.Popen(words, **pipes, env=os.environ | {"OMP_NUM_THREADS": "1"}) as process:
        for text in (CAT, "", DOGS):
            process.stdin.write(text + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == (wanted(text, beams=1)[0] if text else "") + "\n"
        process.stdin.close()
        assert process.wait(60) == 0


# What goes out


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_json_says_what_was_read_and_written_and_where_it_looked(monkeypatch, capsys, kind, tmp_path):
    words = (CAT, 'a "b" </script>', "--json", "--see", "--to", tmp_path / "page.html")
    code, printed, said = translate(monkeypatch, capsys, *words, where=run_of(kind))
    lines = [json.loads(line) for line in printed.splitlines()]
    assert (code, said, len(lines)) == (0, f"wrote {tmp_path / 'page.html'}\n", 2)
    assert [one["source"] for one in lines] == [CAT, 'a "b" </script>']
    assert [one["text"] for one in lines] == wanted(*(one["source"] for one in lines), kind=kind)
    for one in lines:
        weights = np.array(one["weights"])
        assert weights.shape == (len(one["written"]), len(one["read"]))
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-4)


def test_json_of_an_empty_line_and_of_a_model_without_attention(monkeypatch, capsys):
    code, printed, _ = translate(monkeypatch, capsys, "--json", stdin=f"\n{CAT}\n".encode(), where=run_of("none"))
    empty, one = map(json.loads, printed.splitlines())
    assert (code, one["weights"], one["read"][-1], one["written"][-1]) == (0, None, "<eos>", "<eos>")
    assert empty == {"source": "", "text": "", "written": [], "read": [], "weights": []}
    assert set(empty) == set(one)


def test_see_in_a_pipe_draws_the_map_below_the_text_and_says_why(monkeypatch, capsys):
    code, printed, said = translate(monkeypatch, capsys, CAT, "--see", where="en-zh-grammar")
    assert said == (
        "the map is drawn here, because what is printed here goes to no terminal; "
        "open it with: regard serve --model en-zh-grammar\n"
    )
    lines = printed.splitlines()
    assert (code, lines[0]) == (0, "猫坐在垫子上。")
    assert lines[1].split()[:3] == ["The", "cat", "sat"]
    assert "猫 ← cat" in lines[-1]


@pytest.fixture
def terminal(monkeypatch, tmp_path):
    """A terminal with a browser beside it; the list gets the studio that would be served."""
    served = []
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("BROWSER", "true")
    monkeypatch.setattr("regard.cli.explore.in_terminal", lambda: True)
    monkeypatch.setattr("regard.cli.explore.read_bundle", lambda: "export {}")
    monkeypatch.setattr("regard.app.serving.serve", lambda studio, at, **how: served.append((studio, how)))
    yield served
    for studio, _ in served:
        studio.close()


def test_see_in_a_terminal_opens_the_explorer_on_what_was_translated(monkeypatch, capsys, terminal):
    code, printed, said = translate(monkeypatch, capsys, CAT, DOGS, "--see", where="en-zh-grammar")
    ((studio, how),) = terminal
    assert (code, said, how["show"], how["first"], how["host"]) == (0, "Closed.\n", True, None, "127.0.0.1")
    first, second = studio.traces.list_traces()
    assert [first.text, second.text] == [CAT, DOGS]
    assert first.model == "en-zh-grammar"
    entry = studio.traces.find(first.id)
    assert printed.split("\n")[0] == entry.card.output["text"] == "猫坐在垫子上。"
    (one,) = open_translator("en-zh-grammar").translate([CAT])
    for kept, true in zip(studio.traces.trace_of(entry).layers, one.trace().layers, strict=True):
        np.testing.assert_allclose(kept.weights.dense().detach(), true.weights.dense().detach(), atol=1e-7)


def test_what_see_opened_can_be_edited(monkeypatch, capsys, terminal):
    from regard.app.protocol.messages import EditSpec
    from regard.app.runners.monitor import RunMonitor

    translate(monkeypatch, capsys, CAT, "--see")
    ((studio, _),) = terminal
    (card,) = studio.traces.list_traces()
    found = studio.edit(card.id, [EditSpec(kind="mute", layer=0)], RunMonitor())
    assert found.kl > 0


@pytest.mark.parametrize("missing", ["app", "browser", "bundle"])
def test_see_where_nothing_can_be_opened_draws_the_map_and_says_why(monkeypatch, capsys, terminal, missing):
    if missing == "app":
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        monkeypatch.delitem(sys.modules, "regard.app.serving", raising=False)
        monkeypatch.delattr("regard.app.serving", raising=False)
    elif missing == "browser":
        monkeypatch.setattr("regard.app.serving.has_browser", lambda: False)
    else:
        monkeypatch.setattr("regard.cli.explore.read_bundle", read_bundle)
        monkeypatch.setattr("regard.views.explorer.bundle.BUILT", Path("nowhere.js"))
    code, printed, said = translate(monkeypatch, capsys, CAT, "--see", where="en-zh-grammar")
    why = {"app": "pip install 'regard[app]'", "browser": "no browser can be opened", "bundle": "make bundle"}
    assert (code, terminal, said.count("\n")) == (0, [], 1)
    assert why[missing] in said
    assert "猫 ← cat" in printed.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_see_in_a_real_terminal_serves_until_it_is_closed(tmp_path):
    import pty
    import signal

    ours, theirs = pty.openpty()
    told = os.environ | {"BROWSER": "true", "XDG_DATA_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "regard", "translate", "-m", "en-zh-grammar", CAT, "--see"]
    process = subprocess.Popen(words, stdout=theirs, stderr=subprocess.PIPE, env=told)
    os.close(theirs)
    try:
        printed = b""
        while b"Ctrl-C closes it" not in printed:
            printed += os.read(ours, 4096)
        address = re.search(rb"http://127\.0\.0\.1:\d+/\?token=\S+", printed)
        assert address is not None
        assert printed.decode().startswith("猫坐在垫子上。")
        cookies = HTTPCookieProcessor()
        with build_opener(cookies).open(address[0].decode(), timeout=30) as page:
            assert b"/assets/regard.js" in page.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        os.close(ours)


@pytest.mark.parametrize("name", ["map.html", "map.svg", "map.png", "map.pdf", "map.trace", "MAP.HTML"])
def test_a_map_is_written_as_its_ending_says(monkeypatch, capsys, tmp_path, name):
    to = tmp_path / name
    code, printed, said = translate(monkeypatch, capsys, DOGS, "--to", to)
    assert (code, printed, said) == (0, wanted(DOGS)[0] + "\n", f"wrote {to}\n")
    start = {".html": b"<!doctype html>", ".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}
    if to.suffix == ".trace":
        assert sorted(layer.kind for layer in load(to).layers) == ["cross", "self", "self"]
    else:
        assert to.read_bytes().startswith(start[to.suffix.lower()])
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_one_page_holds_every_text_and_none_of_them_acts(monkeypatch, capsys, tmp_path):
    evil = "</script><img src=x onerror=alert(1)>"
    words = (CAT, evil, "שלום עולם", "--to", tmp_path / "page.html", "--beams", 1)
    assert translate(monkeypatch, capsys, *words)[0] == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('class="trace"') == 3
    assert "<img" not in page
    about = json.loads(page.split('id="about">')[1].split("</script>")[0])
    assert [one["info"]["name"] for one in about["traces"]] == [CAT, evil, "שלום עולם"]
    assert [one["info"]["output"]["text"] for one in about["traces"]] == wanted(CAT, evil, "שלום עולם", beams=1)
    assert re.fullmatch(r"#/layer=\d+&head=\d+", about["first"])


# Bad input: one sentence, and exit code 2


def refused(monkeypatch, capsys, *words, where=None, stdin=None):
    """What was said, and what had been printed before."""
    code, printed, said = translate(monkeypatch, capsys, *words, where=where, stdin=stdin)
    assert code == 2
    assert said.startswith("regard: ")
    assert said.count("\n") == 1
    assert len(said) < 400
    return said, printed


@pytest.mark.parametrize("text", ["", " ", "\t\n"])
def test_an_empty_text_is_refused(monkeypatch, capsys, text):
    assert "a text is empty; give some words" in refused(monkeypatch, capsys, CAT, text)[0]


def test_nothing_at_all_is_refused(monkeypatch, capsys, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    for words in ((), ("--file", tmp_path / "empty.txt")):
        assert "there is nothing to translate" in refused(monkeypatch, capsys, *words, stdin=b"")[0]
    assert "nothing to translate" in refused(monkeypatch, capsys, "--to", tmp_path / "x.html", stdin=b"\n\n")[0]
    assert "give one of them" in refused(monkeypatch, capsys, CAT, "--file", tmp_path / "empty.txt")[0]


BAD = {
    "UTF-16": (f"{CAT}\n".encode("utf-16"), "is a UTF-16 file", "line 1: byte 0"),
    "Latin-1": (f"{CAT}\ncafé\n".encode("latin-1"), r"line 2: byte 27 (0xe9) is no UTF-8", "line 2: byte 3 (0xe9)"),
    "NUL": (f"{CAT}\na\0b\n".encode(), "line 2: byte 25 is NUL", "line 2: byte 1 is NUL"),
    "long": (f"{CAT}\n\n{'word ' * 10_000}\n".encode(), "line 3 has 30,000 tokens", "line 3 has 30,000 tokens"),
}


@pytest.mark.parametrize(("content", "of_a_file", "of_a_pipe"), BAD.values(), ids=BAD)
def test_a_bad_line_is_named_and_what_was_translated_before_is_not_lost(
    monkeypatch, capsys, tmp_path, content, of_a_file, of_a_pipe
):
    (tmp_path / "bad.txt").write_bytes(content)
    said, printed = refused(monkeypatch, capsys, "--file", tmp_path / "bad.txt")
    assert of_a_file in said
    assert printed == ""  # a file is looked at before its first line is translated
    said, printed = refused(monkeypatch, capsys, stdin=content)
    assert f"standard input, {of_a_pipe}" in said
    assert printed.startswith("" if "UTF-16" in of_a_file else wanted(CAT)[0] + "\n")


def test_a_text_of_10_000_words_and_half_a_character_are_refused(monkeypatch, capsys):
    assert (
        "but the model takes at most 1,000; truncate it with --length 1000"
        in refused(monkeypatch, capsys, "word " * 10_000)[0]
    )
    assert "whole characters" in refused(monkeypatch, capsys, "caf\udce9")[0]


def test_a_file_that_is_not_there_or_no_file_is_refused(monkeypatch, capsys, tmp_path):
    assert "there is no file" in refused(monkeypatch, capsys, "--file", tmp_path / "nowhere.txt")[0]
    assert "cannot be read" in refused(monkeypatch, capsys, "--file", tmp_path)[0]


@pytest.mark.parametrize("where", ["en-fr", "word " * 200, "induction"])
def test_what_is_no_translator_is_refused(monkeypatch, capsys, where):
    assert "translat" in refused(monkeypatch, capsys, CAT, where=where)[0]


def test_a_place_that_cannot_be_written_is_refused(monkeypatch, capsys, tmp_path):
    said, printed = refused(monkeypatch, capsys, CAT, "--to", tmp_path / "x.doc")
    assert (printed, "none of .html, .svg, .png, .pdf, .trace" in said) == ("", True)
    said, printed = refused(monkeypatch, capsys, CAT, "--to", tmp_path / "nowhere" / "x.html")
    assert (printed, "does not exist; make it first" in said) == ("", True)
    (tmp_path / "x.html").mkdir()
    said, printed = refused(monkeypatch, capsys, CAT, "--to", tmp_path / "x.html")
    assert (printed, "is a folder, but a file is written" in said) == ("", True)


@pytest.mark.parametrize("name", ["x.html", "x.png", "x.trace"])
def test_a_folder_that_is_read_only_is_refused(monkeypatch, capsys, tmp_path, name):
    if os.geteuid() == 0:
        if not os.path.isdir("/proc/self"):
            pytest.skip("nothing is read-only for this user")
        folder = "/proc/self"  # even for root
    else:
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o555)
    said, printed = refused(monkeypatch, capsys, CAT, "--to", f"{folder}/{name}")
    assert "cannot be written" in said
    known = not os.access(folder, os.W_OK)  # root may write everywhere, says the system, before it refuses
    assert printed == ("" if known else wanted(CAT)[0] + "\n")  # what was made is not lost


def test_a_folder_that_may_not_be_written_to_is_refused_before_anything_is_made(monkeypatch, capsys, tmp_path):
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, *how: path != tmp_path and allowed(path, *how))
    said, printed = refused(monkeypatch, capsys, CAT, "--to", tmp_path / "x.png")
    assert (printed, "cannot be written to; name another one for 'x.png'" in said) == ("", True)


def test_a_picture_of_several_texts_is_refused(monkeypatch, capsys, tmp_path):
    to = tmp_path / "x.svg"
    said, printed = refused(monkeypatch, capsys, CAT, DOGS, "--to", to)
    assert (printed, "holds one map, but 2 texts came; write .html" in said) == ("", True)
    said, printed = refused(monkeypatch, capsys, "--to", to, stdin=f"{CAT}\n{DOGS}\n".encode())
    assert ("2 texts came" in said, len(printed.splitlines())) == (True, 2)
    assert not to.exists()
    assert translate(monkeypatch, capsys, "--to", to, stdin=f"\n{CAT}\n\n".encode())[0] == 0
    assert to.exists()


def test_a_model_without_attention_has_no_map_to_see(monkeypatch, capsys, tmp_path):
    for words in (("--see",), ("--to", tmp_path / "x.html"), ("--to", tmp_path / "x.trace")):
        said, printed = refused(monkeypatch, capsys, CAT, *words, where=run_of("none"))
        assert (printed, "looks at nothing while it writes" in said) == ("", True)


def test_a_damaged_run_is_refused(monkeypatch, capsys, tmp_path):
    folder = copied(tmp_path)
    (folder / "model" / "source.json").write_bytes((folder / "model" / "target.json").read_bytes())
    assert "source.json is not the file" in refused(monkeypatch, capsys, CAT, where=folder)[0]
    (folder / "model" / "manifest.json").unlink()
    assert "has not come to its end" in refused(monkeypatch, capsys, CAT, where=folder)[0]


# Scores


def test_evaluate_prints_samples_scores_signatures_and_the_alignment(monkeypatch, capsys):
    words = ("evaluate", str(run_of()), "--count", "6", "--part", "test", "--beams", "1")
    code, printed, _ = run(monkeypatch, capsys, *words)
    assert code == 0
    lines = printed.splitlines()
    assert (lines[1][:4], lines[2][:4]) == ("  → ", "  = ")
    assert "(6 sentences, greedy)" in lines[-4]
    assert lines[-3].startswith("  nrefs:1|case:mixed|")
    assert "tok:zh" in lines[-3]
    assert "nc:6" in lines[-2]
    assert lines[-1].startswith("alignment error rate 0.")
    found = json.loads(run(monkeypatch, capsys, *words, "--json")[1])
    assert f"BLEU {found['bleu']:.2f}  chrF {found['chrf']:.2f}" in printed


def test_evaluate_reads_files_and_knows_where_there_is_no_alignment(monkeypatch, capsys, tmp_path):
    (tmp_path / "a.en").write_text("Hi.\n")
    (tmp_path / "a.zh").write_text("嗨。\n")
    words = ("evaluate", str(run_of()), "--data", f"{tmp_path}/a.en,{tmp_path}/a.zh")
    code, printed, _ = run(monkeypatch, capsys, *words, "--lowercase")
    assert code == 0
    assert "(cased " in printed
    assert "case:lc" in printed
    assert "(1 sentences, 5 beams)" in printed
    assert "alignment" not in printed
    assert "case:mixed" in run(monkeypatch, capsys, *words, "--cased")[1]
    printed = run(monkeypatch, capsys, "evaluate", str(run_of("none")), "--count", "2", "--beams", "1")[1]
    assert "no alignment: this model looks at nothing while it writes" in printed


def test_evaluate_says_which_lines_of_a_file_it_left_out(monkeypatch, capsys, tmp_path):
    (tmp_path / "a.tsv").write_text("Hi.\t嗨。\n\t空\nYes.\t是。\n\nNo.\t\n", encoding="utf-8")
    words = ("evaluate", str(run_of()), "--data", f"{tmp_path}/a.tsv", "--beams", "1")
    code, printed, _ = run(monkeypatch, capsys, *words)
    assert (code, "(2 sentences, greedy)" in printed) == (0, True)
    assert "  left out: 3 lines (2, 4, 5), where a side is empty or too long\n" in printed
    assert json.loads(run(monkeypatch, capsys, *words, "--json")[1])["skipped"] == [2, 4, 5]


def test_evaluate_refuses_what_it_cannot_read_in_one_sentence(monkeypatch, capsys, tmp_path):
    (tmp_path / "a.en").write_text("Hi.\nHo.\n")
    (tmp_path / "a.zh").write_text("嗨。\n")
    for words in (
        ("--data", f"{tmp_path}/a.en,{tmp_path}/a.zh"),
        ("--data", f"{tmp_path}/nowhere.tsv"),
        ("--data", "en-fr"),
        ("--part", "nothing"),
    ):
        code, printed, said = run(monkeypatch, capsys, "evaluate", str(run_of()), *words)
        assert (code, printed, said.count("\n"), said[:8]) == (2, "", 1, "regard: ")


def test_every_embedded_model_is_listed_with_a_sentence(monkeypatch, capsys):
    printed = run(monkeypatch, capsys, "models")[1]
    names = embedded.names()
    assert {"en-zh-grammar", "en-zh-grammar-recurrent"} <= set(names)
    for name in names:
        assert embedded.describe(name)["about"]
        assert f"{name}: {embedded.describe(name)['about']}\n" in printed


def test_a_run_in_the_place_of_a_text_is_told_where_it_belongs(monkeypatch, capsys):
    code, printed, said = run(monkeypatch, capsys, "translate", str(run_of()), CAT)
    assert (code, printed) == (2, "")
    assert "is a run, not a text; name it as the model: regard translate -m " in said
