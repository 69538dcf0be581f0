"""One cell's rows to and from a Parquet file that says which schema version it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import BenchError
from harness.store.atomic import write_file
from harness.store.schema import SCHEMA_VERSION, TABLES

VERSION_KEY = b"dspark_bench.schema_version"

Rows = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]  # a list of rows, or columns by name


def to_table(name: str, cell_id: str, rows: Rows) -> pa.Table:
    """Rows of one cell as the Arrow table `name`; columns that are absent become null.

    Raises `ValueError` for a column that the table does not have, a null cell id or another cell's.
    """
    schema = TABLES[name]
    columns = _columns(rows)
    unknown = sorted(columns.keys() - set(schema.names))
    if unknown:
        raise ValueError(f"table {name!r} has no column {', '.join(map(repr, unknown))}")
    count = len(next(iter(columns.values()), ()))
    ids = columns.get("cell_id", [cell_id] * count)
    if any(value != cell_id for value in ids):
        raise ValueError(f"table {name!r}: rows of cell {cell_id!r} carry another cell_id")
    arrays = [
        pa.array(ids if f.name == "cell_id" else columns.get(f.name, [None] * count), type=f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema.with_metadata({VERSION_KEY: SCHEMA_VERSION.encode()}))


def _columns(rows: Rows) -> Mapping[str, Sequence[Any]]:
    if isinstance(rows, Mapping):
        return rows
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table with page checksums, whole or not at all. Raises `BenchError` when it cannot be."""
    write_file(path, lambda file: pq.write_table(table, file, compression="zstd", write_page_checksum=True))


def read_table(path: Path, name: str, columns: list[str] | None = None) -> pa.Table:
    """Read a file of the table `name`; `columns` None reads all.

    Raises `BenchError` for a file that is damaged, of another schema version or not this table, and
    `FileNotFoundError` for one that is not there.
    """
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            _check_schema(path, name, file.schema_arrow)
            return file.read(columns=columns)
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise BenchError(f"{path}: cannot read: permission denied. Make the file readable.") from error
    except (pa.ArrowException, OSError) as error:
        what = f"damaged or cut short, so cell {path.stem} cannot be read: {_first_line(error)}"
        raise BenchError(f"{path}: {what}. {_again(path)}") from error


def _check_schema(path: Path, name: str, found: pa.Schema) -> None:
    version = (found.metadata or {}).get(VERSION_KEY, b"none").decode(errors="replace")
    check_version(path, version)
    if not found.equals(TABLES[name]):
        wrong = sorted(set(map(str, found)) ^ set(map(str, TABLES[name])))
        raise BenchError(
            f"{path}: not the columns of table {name!r} ({', '.join(wrong[:3])}). {_again(path)}"
        )


def check_version(path: Path, version: object) -> None:
    """Raise `BenchError` when a file is of another schema version than this program reads."""
    if version != SCHEMA_VERSION:
        raise BenchError(
            f"{path}: schema version {version!r}, but this program reads version {SCHEMA_VERSION!r}. "
            "Read it with the dspark-bench that wrote it, or measure again into a new run directory."
        )


def _again(path: Path) -> str:
    run = path.parent.parent
    files = ", ".join(f"{table}/{path.stem}.parquet" for table in TABLES)
    return f"Delete that cell's files ({files} in {run}) and run again: only this cell is measured anew."


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
