"""Reading a registered data set: from a folder of one's own, the local hub cache or the hub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from harness.errors import BenchError
from harness.prompts.registry import HUB_SETS, HubSet

LOCAL = "DSPARK_BENCH_DATASETS"  # folder with the hub's layout: <owner>/<name>/<file>


def hub_set(name: str) -> HubSet:
    """The registered data set `name`. Raises `BenchError`, listing what is registered, when there is none."""
    if name not in HUB_SETS:
        raise BenchError(f"Unknown data set 'hf:{name}': registered are {', '.join(sorted(HUB_SETS))}.")
    return HUB_SETS[name]


def hub_texts(name: str, registered: HubSet) -> Iterator[str]:
    """The prompts of a registered data set, in the order of its files.

    The files are read from `$DSPARK_BENCH_DATASETS/<owner>/<name>/` when the variable is set, else from the
    hub's local cache, into which they are downloaded once at the pinned revision. Raises `BenchError` when
    the `datasets` package is missing, a file cannot be had, or a row lacks a column.
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise BenchError(
            f"'hf:{name}' needs the `datasets` package: pip install 'dspark-bench[hub]'."
        ) from error
    root = os.environ.get(LOCAL)
    folder = Path(root).expanduser() / registered.repository if root else _snapshot(name, registered)
    mend = f"Get it again with `{_command(registered)}`" + (f", or unset {LOCAL}." if root else ".")
    paths = [folder / file for file in registered.files]
    for path in paths:
        if not path.is_file():
            raise BenchError(f"'hf:{name}': there is no file {path}. {mend}")
    if not any(path.stat().st_size for path in paths):
        return  # no prompts, which `datasets` cannot express
    kind = "parquet" if paths[0].suffix == ".parquet" else "json"
    try:
        rows = load_dataset(kind, data_files=[str(path) for path in paths], split="train", streaming=True)
        for row in rows:
            yield registered.text({column: row[column] for column in registered.columns})
    except KeyError as error:
        raise BenchError(f"'hf:{name}': the files in {folder} have no column {error}. {mend}") from error
    except Exception as error:  # pyarrow's, datasets' own and the file system's, for a damaged file
        why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise BenchError(f"'hf:{name}': the files in {folder} cannot be read ({why}). {mend}") from error


def _command(registered: HubSet) -> str:
    return f"hf download {registered.repository} --repo-type dataset --revision {registered.revision}"


def _snapshot(name: str, registered: HubSet) -> Path:
    """The folder of the pinned revision in the hub's cache. With its files there, the hub is not asked."""
    from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache

    repository, revision = registered.repository, registered.revision
    first, *_ = cached = [
        try_to_load_from_cache(repository, file, revision=revision, repo_type="dataset")
        for file in registered.files
    ]
    if isinstance(first, str) and all(isinstance(path, str) for path in cached):
        return Path(first.removesuffix(registered.files[0]))
    try:
        # Asked first because it fails at once, where the download tries again for half a minute.
        HfApi().dataset_info(repository, revision=revision, timeout=20)
        files = list(registered.files)
        return Path(
            snapshot_download(repository, repo_type="dataset", revision=revision, allow_patterns=files)
        )
    except Exception as error:  # no network, a proxy's answer, an offline hub: many types, one mend
        why = str(error.__cause__ or error).partition("\n")[0]
        raise BenchError(
            f"'hf:{name}': not in the local hub cache, and the Hugging Face hub cannot be reached ({why}). "
            f"Where there is a network, run `{_command(registered)}` and set HF_HOME to that cache, "
            f"or keep the files under FOLDER/{repository}/ and set {LOCAL}=FOLDER."
        ) from error
