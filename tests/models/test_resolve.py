"""Folders and hub repositories: layout, content hash, and what is said when they cannot be had."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import BenchError
from harness.models.content import content_sha256
from harness.models.resolve import resolve

FILES = {
    "config.json": '{"eos_token_id": 2}',
    "model.safetensors": "weights",
    "tokenizer.json": "{}",
    "README.md": "words",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Something that looks like a model folder; nothing here reads the weights."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "suites/models/tiny"
    path.mkdir(parents=True)
    for name, text in FILES.items():
        (path / name).write_text(text)
    return path


def test_a_path_is_relative_to_the_suite_file(folder: Path, tmp_path: Path) -> None:
    resolved = resolve("path:models/tiny", sha256=None, base=tmp_path / "suites")
    assert resolved.path == folder
    assert resolve(f"path:{folder}", sha256=resolved.sha256, base=Path("/nowhere")).sha256 == resolved.sha256


def test_wrong_hash_names_both(folder: Path) -> None:
    actual = resolve(f"path:{folder}", sha256=None, base=folder).sha256
    with pytest.raises(BenchError, match=f"{actual}.*{'f' * 64}"):
        resolve(f"path:{folder}", sha256="f" * 64, base=folder)


@pytest.mark.parametrize("changed", ["config.json", "model.safetensors", "tokenizer.json"])
def test_hash_follows_what_decides_the_output(folder: Path, changed: str) -> None:
    before = content_sha256(folder)
    (folder / changed).write_text(FILES[changed].replace(FILES[changed][0], " "))
    assert content_sha256(folder) != before
    (folder / changed).write_text(FILES[changed])
    assert content_sha256(folder) == before


def test_hash_ignores_place_and_papers_and_tells_names(folder: Path, tmp_path: Path) -> None:
    before = content_sha256(folder)
    (folder / "README.md").write_text("other words")
    assert content_sha256(shutil.copytree(folder, tmp_path / "copy")) == before
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    assert content_sha256(folder) != before


def test_large_files_are_read_once(folder: Path, tmp_path: Path) -> None:
    """The second hash comes from the cache: a lie planted there is believed until the file changes."""
    content_sha256(folder)
    hashes = tmp_path / "cache/dspark-bench/hashes"
    assert not list(hashes.iterdir()), "files written just now may still change unnoticed"
    for name in FILES:
        os.utime(folder / name, (1e9, 1e9))
    before = content_sha256(folder)
    for kept in hashes.iterdir():
        kept.write_text("0" * 64)
    lie = content_sha256(folder)
    assert lie != before
    for name in FILES:
        (folder / name).touch()
    assert content_sha256(folder) == before


def test_hash_needs_no_cache(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content_sha256(folder)
    (tmp_path / "no-cache").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-cache"))
    assert content_sha256(folder) == before


@pytest.mark.parametrize(
    ("absent", "says"), [("config.json", "no config.json"), ("model.safetensors", r"no \*\.safetensors")]
)
def test_a_folder_that_is_no_model(folder: Path, absent: str, says: str) -> None:
    (folder / absent).unlink()
    with pytest.raises(BenchError, match=f"path:{folder}.*{says}.*Point it at"):
        resolve(f"path:{folder}", sha256=None, base=folder)


def test_a_missing_shard_is_named(folder: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BenchError, match=r"lacks model-00002-of-00002\.safetensors"):
        resolve(f"path:{folder}", sha256=None, base=folder)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=f"there is no folder {tmp_path / 'absent'}"):
        resolve("path:absent", sha256=None, base=tmp_path)


def _resolve_elsewhere(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In another process: the hub's client reads its settings once, when it is imported."""
    program = (
        "from pathlib import Path; from harness.models.resolve import resolve\n"
        "from harness.models.source import SourceUnreachableError\n"
        "try: print(resolve(%r, sha256=None, base=Path()).sha256)\n"
        "except SourceUnreachableError as error: print('unreachable', error)"
    )
    return subprocess.run(
        [sys.executable, "-c", program % source],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_hub_repository_from_the_local_cache(folder: Path, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub/models--org--tiny"
    shutil.copytree(folder, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text(commit)
    offline = {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    expected = content_sha256(folder)
    assert _resolve_elsewhere("hf:org/tiny", **offline).stdout.strip() == expected
    assert _resolve_elsewhere(f"hf:org/tiny@{commit}", **offline).stdout.strip() == expected


@pytest.mark.parametrize("settings", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}])
def test_hub_that_cannot_be_reached(tmp_path: Path, settings: dict[str, str]) -> None:
    answer = _resolve_elsewhere("hf:org/tiny@v1", HF_HUB_CACHE=str(tmp_path), **settings).stdout
    assert answer.startswith("unreachable hf:org/tiny@v1: ")
    assert "hf download org/tiny --revision v1" in answer
    assert "HF_HOME" in answer and "path:" in answer
