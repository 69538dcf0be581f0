"""Compilers are found where PyTorch and the CUDA toolkit look for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.doctor.tools import check_compiler, check_nvcc


def program(folder: Path, name: str, output: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\necho '{output}'\n")
    file.chmod(0o755)
    return file


def test_the_compiler_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, "clang++", "clang version 99.1")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check_compiler() == ("C++", True, "clang version 99.1", None)


def test_cxx_goes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, "c++", "the other one")
    mine = program(tmp_path / "my tools", "mycc", "my compiler 3")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", f"'{mine}' -pipe")
    assert check_compiler().detail == "my compiler 3"


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check = check_compiler()
    assert check.usable is False and "no c++, g++ or clang++ on the PATH" in check.detail and check.mend
    monkeypatch.setenv("CXX", "/nowhere/g++")
    assert "CXX=/nowhere/g++" in check_compiler().detail


def test_nvcc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check = check_nvcc()
    assert check.usable is False and check.mend
    nvcc = program(tmp_path / "cuda/bin", "nvcc", "Cuda compilation tools, release 13.0, V13.0.88")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert check_nvcc() == ("nvcc", True, f"CUDA 13.0, {nvcc}", None)
