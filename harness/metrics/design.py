"""The experiment's design: at one point of the matrix, the sums of every arm by repeat and prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from harness.metrics.bootstrap import Resamples, resamples
from harness.metrics.counts import Floats, Ints, Sums, request_sums
from harness.store.frames import Frames

ALL = "all"  # in place of a data set or domain: pooled over them

REQUEST_COLUMNS = (
    "cell_id",
    "prompt_sha256",
    "output_tokens",
    "finish_reason",
    "arrival_s",
    "first_token_s",
    "last_token_s",
)

COORDINATES = ("cell_id", "target", "concurrency", "temperature", "arm", "dataset", "domain", "repeat")
CELL_COLUMNS = (*COORDINATES, "drafter", "scheduler", "block_size", "backend", "arrival_rate", "wall_s")

LEVELS = ("dataset", "domain", "all")


class Level(NamedTuple):
    """What a row pools: one data set, one domain or everything."""

    level: str
    dataset: str
    domain: str
    units: Ints  # prompts of the point that belong to it


class Window(NamedTuple):
    """What a cell produced in its measured window."""

    output_tokens: float  # of requests without error
    wall_s: float


class ArmData(NamedTuple):
    """One arm at one point."""

    name: str
    cells: pd.DataFrame  # its ok cells
    windows: dict[tuple[str, int], Window]  # by data set and repeat
    requests: pd.DataFrame
    sums: Sums  # [R, P, K]


class Point(NamedTuple):
    """One target, concurrency and temperature: what is compared with each other."""

    target: str
    concurrency: int
    temperature: float
    units: pd.DataFrame  # P rows (dataset, prompt_sha256): a prompt is one cluster, in all repeats and arms
    repeats: list[int]  # R
    arms: list[ArmData]  # in the order of the suite

    def levels(self, wanted: tuple[str, ...]) -> Iterator[Level]:
        """The pools of prompts of the wanted levels that have any."""
        if "all" in wanted:
            yield Level("all", ALL, ALL, np.arange(len(self.units)))
        if "domain" in wanted:
            for domain in self.units["domain"].unique():
                yield Level("domain", ALL, str(domain), np.flatnonzero(self.units["domain"] == domain))
        if "dataset" in wanted:
            for dataset in self.units["dataset"].unique():
                units = np.flatnonzero(self.units["dataset"] == dataset)
                yield Level("dataset", str(dataset), str(self.units["domain"].iloc[units[0]]), units)

    def coordinates(self, level: Level) -> dict[str, Any]:
        """The columns that say where in the matrix a row of a summary belongs."""
        return {
            "target": self.target,
            "concurrency": self.concurrency,
            "temperature": self.temperature,
            "level": level.level,
            "dataset": level.dataset,
            "domain": level.domain,
        }

    def weights(self, units: Ints, repeats: int) -> Resamples:
        """The resamples of these prompts and so many repeats: the same for every arm."""
        return resamples(tuple(pd.factorize(self.units["dataset"].iloc[units])[0].tolist()), repeats)

    def target_only(self, arm: ArmData) -> ArmData | None:
        """The arm that this one's speed-up is over: the first target-only arm of the same backend."""
        backend = arm.cells["backend"].iloc[0]
        for other in self.arms:
            if other.cells["drafter"].iloc[0] == "none" and other.cells["backend"].iloc[0] == backend:
                return other
        return None


def points(frames: Frames) -> Iterator[Point]:
    """The points of a run that have at least one ok cell, in the order of their first cells."""
    cells = frames.cells[frames.cells["status"] == "ok"].astype({"cell_id": "str"}).reset_index(drop=True)
    requests = frames.requests.reset_index(drop=True)
    sums = request_sums(requests, frames.rounds)
    produced = pd.Series(sums["output_tokens"]).groupby(requests["cell_id"].astype("str")).sum()
    cells = cells[list(CELL_COLUMNS)]
    cells["produced"] = cells["cell_id"].map(produced).fillna(0.0)
    placed = requests[list(REQUEST_COLUMNS)].astype({"cell_id": "str"})
    placed = placed.merge(cells[list(COORDINATES)], on="cell_id", how="left", validate="many_to_one")
    keys = ["target", "concurrency", "temperature"]
    rows_at = placed.groupby(keys).indices
    for (target, concurrency, temperature), at in cells.groupby(keys, sort=False):
        rows = np.sort(rows_at.get((target, concurrency, temperature), np.empty(0, dtype=np.int64)))
        yield _point(
            (target, concurrency, temperature), at, placed.iloc[rows], Sums(sums.values[rows], sums.names)
        )


def _point(key: tuple[Any, ...], cells: pd.DataFrame, requests: pd.DataFrame, sums: Sums) -> Point:
    order = {name: i for i, name in enumerate(cells["dataset"].unique())}
    units = requests[["dataset", "domain", "prompt_sha256"]].drop_duplicates(ignore_index=True)
    units = units.sort_values("dataset", key=lambda c: c.map(order), kind="stable", ignore_index=True)
    repeats = sorted(int(r) for r in cells["repeat"].unique())
    unit = pd.MultiIndex.from_frame(units[["dataset", "prompt_sha256"]]).get_indexer(
        pd.MultiIndex.from_frame(requests[["dataset", "prompt_sha256"]])
    )
    slot = np.searchsorted(repeats, requests["repeat"].to_numpy()) * len(units) + unit
    arms = []
    for name, of in cells.groupby("arm", sort=False):
        mine = (requests["arm"] == name).to_numpy()
        values = _sum_by(slot[mine], sums.values[mine], len(repeats) * len(units))
        shaped = Sums(values.reshape(len(repeats), len(units), -1), sums.names)
        windows = {
            (str(cell["dataset"]), int(cell["repeat"])): Window(cell["produced"], cell["wall_s"])
            for cell in of[["dataset", "repeat", "produced", "wall_s"]].to_dict("records")
        }
        arms.append(ArmData(str(name), of, windows, requests[mine], shaped))
    return Point(str(key[0]), int(key[1]), float(key[2]), units, repeats, arms)


def _sum_by(slot: Ints, values: Floats, slots: int) -> Floats:
    out = np.zeros((slots, values.shape[1]))
    np.add.at(out, slot, values)
    return out
