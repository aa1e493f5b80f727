"""Every error that reaches a page has a code, and a page has words for it in each of its languages."""

import ast
import re
from pathlib import Path

import pytest
import torch

import regard
from regard.app.security.guard import SENTENCES
from regard.errors import RegardError
from regard.trace.file.digests import OPEN, SEAL, seal_header
from regard.trace.record.weights import from_weights
from tests.app.served import EDIT, HOST, SENT, opened, run

SOURCE = Path(regard.__file__).parent
MESSAGES = Path(__file__).parents[2] / "web/src/language"
CODED = re.compile(r'^ {2}"code\.([a-z.]+)": "(.*)",$', re.M)


def words(language):
    """The sentences of a language, by code."""
    return dict(CODED.findall((MESSAGES / language / "codes.ts").read_text(encoding="utf-8")))


def codes():
    """(code, the names of what it tells) of every error in the package that has one."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "with_code":
                named = {word.arg for word in node.keywords}
                strings = [one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant)]
                yield from ((code, named) for code in strings)
    yield from ((f"access.{why}", set()) for why in SENTENCES)


def holes(sentence):
    return set(re.findall(r"\{(\w+)\}", sentence))


def test_every_code_has_a_sentence_in_both_languages_and_tells_what_the_sentence_names():
    found = list(codes())
    assert len({code for code, _ in found}) > 50
    for language in ("en", "zh"):
        known = words(language)
        for code, named in found:
            assert code in known, f"{code} has no sentence in {language}/codes.ts"
            assert holes(known[code]) <= named, f"{code} in {language}/codes.ts names more than the error tells"


def test_no_sentence_is_kept_for_a_code_that_nobody_sends():
    thrown = {
        code
        for file in MESSAGES.parent.rglob("*.ts")
        if MESSAGES not in file.parents
        for code in re.findall(r'"([a-z]+\.[a-z]+)"', file.read_text(encoding="utf-8"))
    }
    sent = {code for code, _ in codes()}
    assert [code for code in words("en") if code not in sent | thrown] == []


def test_an_error_without_a_code_is_told_by_its_sentence_alone():
    assert RegardError("what, and what to do").to_json() == {"error": "what, and what to do"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("kept"), raises=False) as (client, _):
        yield client


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "sound.trace"
    from_weights(torch.eye(3)[None, None], ["a", "b", "c"]).save(path)
    return path.read_bytes()


DAMAGED = {
    "file.small": lambda data: b"abc",
    "file.unfinished": lambda data: bytes(100),
    "file.foreign": lambda data: b"<!doctype html><p>this is a page",
    "file.cut": lambda data: data[:-9],
    "file.long": lambda data: data + b"more",
    "file.header": lambda data: data[:20] + b"\xff" + data[21:],
    "file.newer": lambda data: sealed_again(data.replace(b'\\"version\\":2', b'\\"version\\":9')),
    "file.older": lambda data: sealed_again(data.replace(b'\\"version\\":2', b'\\"version\\":1')),
    "file.bare": lambda data: sealed_again(data.replace(b'"regard"', b'"ragard"')),
    "file.unchecked": lambda data: data.replace(b'"seal"', b'"sole"'),
    "file.bytes": lambda data: data.replace(b'\\"cross\\"', b'\\"Cross\\"').replace(b'\\"self\\"', b'\\"Self\\"'),
}


def sealed_again(data):
    """The file with a seal that is right again."""
    stop, at = 8 + int.from_bytes(data[:8], "little"), 8 + len(SEAL)
    return seal_header(data[8:at] + OPEN.encode() + data[at + len(OPEN) : stop]) + data[stop:]


@pytest.mark.parametrize("code", DAMAGED)
def test_a_file_that_is_no_whole_trace_is_refused_by_its_code(client, file, code):
    made = DAMAGED[code](file)
    assert made != file
    answer = client.post("/api/traces", content=made, headers={"x-name": "odd.trace"})
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert holes(words("zh")[code]) <= set(answer.json()["about"])


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("trace.none", ("GET", "/api/traces/0123456789abcdef", None)),
        ("server.unknown", ("GET", "/api/nothing", None)),
        ("training.none", ("GET", "/api/trainings/0123456789abcdef/1/0", None)),
        ("sent.larger", ("PATCH", "/api/traces/0123456789abcdef", "x" * 70_000)),
        ("sent.wrong", ("POST", "/api/traces/0123456789abcdef/edit", '{"edits": []}')),
    ],
)
def test_what_is_refused_over_http_has_its_code(client, code, asked):
    method, path, content = asked
    told = client.request(method, path, content=content).json()
    assert told["code"] == code
    assert holes(words("en")[code]) <= set(told["about"])


@pytest.mark.parametrize(
    ("code", "ask"),
    [
        ("model.none", {"model": "nobody"}),
        ("text.empty", {"text": " "}),
        ("text.empty", {"model": "en-zh-grammar", "text": ""}),
        ("text.nul", {"model": "en-zh-grammar", "text": "a\0b"}),
        ("text.longer", {"model": "en-zh-grammar", "text": "cat " * 1100}),
        ("text.long", {"text": "A " * 9000}),
        ("text.characters", {"text": "A" * 100_001}),
        ("sent.wrong", {"steps": 100_000}),
    ],
)
def test_a_run_that_is_refused_has_its_code(client, code, ask):
    last = run(client, **ask)[-1]
    assert (last["kind"], last["code"]) == ("failed", code), last
    assert holes(words("zh")[code]) <= set(last["about"])


def test_what_a_trace_does_not_hold_has_its_code(client):
    name = run(client)[-1]["trace"]
    for code, layer, head, query in (("layer.none", 99, 0, 0), ("head.none", 0, 99, 0), ("place.none", 0, 0, 999)):
        about = {"layer": layer, "batch": 0, "head": head, "query": query}
        assert client.post(f"/api/traces/{name}/ask/row", json=about).json()["code"] == code
    assert client.get(f"/api/traces/{name}", params={"run": 7}).json()["code"] == "run.none"


def test_an_edit_that_is_not_possible_has_its_code(client, file):
    name = run(client)[-1]["trace"]
    beyond = EDIT | {"heads": [99]}
    assert client.post(f"/api/traces/{name}/edit", json={"edits": [beyond]}).json()["code"] == "head.none"
    beyond = EDIT | {"kind": "block", "query": 999, "key": 0}
    told = client.post(f"/api/traces/{name}/edit", json={"edits": [beyond]}).json()
    assert (told["code"], told["about"]) == ("edit.refused", {"why": told["error"]})
    alone = client.post("/api/traces", content=file).json()["trace"]
    assert client.post(f"/api/traces/{alone}/edit", json={"edits": [EDIT]}).json()["code"] == "edit.alone"


def test_who_may_not_ask_reads_it_by_its_code_and_an_old_link_opens_a_page_that_says_so(client):
    plain = {"authorization": "", "cookie": ""}
    assert client.get("/api/traces", headers=plain).json()["code"] == "access.token"
    assert client.get("/?token=wrong", headers=plain).json()["code"] == "access.token"
    page = client.get("/?token=wrong", headers=plain | {"accept": "text/html"})
    assert (page.status_code, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "set-cookie" not in page.headers
    other = {"origin": "http://evil.example"}
    assert client.get("/api/traces", headers=SENT | other).json()["code"] == "access.origin"
    assert client.get("/api/traces", headers={"host": f"x{HOST}"}).json()["code"] == "access.host"
