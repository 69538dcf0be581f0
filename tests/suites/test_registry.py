"""The registry: lazy, refuses a name offered twice, says what exists."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.errors import BenchError
from harness.registry import Registry, from_entry_points


def distribution(folder: Path, name: str, entry_points: str) -> None:
    """An installed distribution, as importlib.metadata sees it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[test_bench.things]\n{entry_points}\n")


def test_entry_points_are_imported_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "lazy", "one = lazy_things:ONE\ntwo = lazy_things:TWO")
    (tmp_path / "lazy_things.py").write_text("ONE = 'the first'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    things = from_entry_points("thing", "test_bench.things")
    assert things.names() == ["one", "two"]
    assert "lazy_things" not in sys.modules
    assert str(things.get("one")) == "the first"
    assert "lazy_things" in sys.modules
    with pytest.raises(BenchError, match=r"^the thing 'two' cannot be imported: .*TWO"):
        things.get("two")


def test_a_name_offered_by_two_packages_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "first", "one = a:ONE")
    distribution(tmp_path, "second", "one = b:ONE")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BenchError, match=r"^two installed packages offer the thing 'one'; uninstall one"):
        from_entry_points("thing", "test_bench.things")


def test_an_unknown_name_lists_what_exists() -> None:
    things = Registry("thing")
    with pytest.raises(BenchError, match=r"^unknown thing 'x'; installed: none \(is the package installed\?"):
        things.get("x")
    things.register("b", lambda: 1)
    things.register("a", lambda: 2)
    with pytest.raises(BenchError, match=r"^unknown thing 'x'; installed: a, b$"):
        things.get("x")
