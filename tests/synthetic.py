"""A run made up from known acceptance probabilities: columns, frames or a run directory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from harness.store.frames import Frames, to_frames
from harness.store.parquet import to_table
from harness.store.rundir import PlannedCell, RunDirectory


@dataclass(frozen=True)
class ArmSpec:
    """An arm by what it would measure. An empty `conditional` is a target-only arm."""

    conditional: Sequence[float] = ()  # c_1..c_γ: probability of accepting k given 1..k-1
    round_s: float = 0.040  # mean time of one round
    verified: int | None = None  # ℓ of every round; γ when absent
    backend: str = "engine"

    @property
    def gamma(self) -> int:
        return len(self.conditional)


@dataclass(frozen=True)
class Scenario:
    """The matrix of a made-up run; `prompt_spread` shifts a prompt's log odds: the cluster effect."""

    arms: Mapping[str, ArmSpec]
    datasets: Mapping[str, str] = field(default_factory=lambda: {"gsm": "math"})  # data set: domain
    prompts: int = 20
    concurrency: Sequence[int] = (1,)
    temperature: float = 0.0
    repeats: int = 1
    output_tokens: int = 60
    prompt_spread: float = 0.5
    noise: float = 0.05  # of a request's round time
    repeat_noise: float = 0.0  # of a repeat's round time, all arms alike half of it
    stop_chance: float = 0.0  # that an accepted draft token is a stop token
    seed: int = 0


@dataclass(frozen=True)
class CellRows:
    """One cell as it would be committed."""

    cell_id: str
    row: dict[str, Any]
    requests: dict[str, list[Any]]
    rounds: dict[str, list[Any]]


def simulate(scenario: Scenario) -> list[CellRows]:
    """Draw every cell of the scenario."""
    cells = []
    for d, (dataset, domain) in enumerate(scenario.datasets.items()):
        shift = np.random.default_rng([scenario.seed, 1, d]).normal(
            0, scenario.prompt_spread, scenario.prompts
        )
        for concurrency in scenario.concurrency:
            for repeat in range(scenario.repeats):
                for a, (arm, spec) in enumerate(scenario.arms.items()):
                    rng = np.random.default_rng([scenario.seed, 2, d, concurrency, repeat, a])
                    key = f"{dataset}/{concurrency}/{repeat}/{arm}"
                    place = {
                        "dataset": dataset,
                        "domain": domain,
                        "concurrency": concurrency,
                        "repeat": repeat,
                    }
                    cells.append(_cell(scenario, spec, shift, rng, {**place, "arm": arm}, key))
    return cells


def frames(cells: Sequence[CellRows]) -> Frames:
    """The cells as `RunDirectory.frames` would give them."""
    ok = [c for c in cells if c.row["status"] == "ok"]

    def tables(name: str, rows: Sequence[Any], of: Sequence[CellRows]) -> list[pa.Table]:
        return [to_table(name, cell.cell_id, r) for cell, r in zip(of, rows, strict=True)]

    return to_frames(
        tables("cells", [[c.row] for c in cells], cells),
        tables("requests", [c.requests for c in ok], ok),
        tables("rounds", [c.rounds for c in ok], ok),
    )


def not_ok(cell: CellRows, status: str, reason: str) -> CellRows:
    """The same cell, had it failed, been skipped or been unsupported."""
    counts = ("wall_s", "requests", "output_tokens", "rounds", "drafted", "verified", "accepted")
    return CellRows(
        cell.cell_id, {**cell.row, **dict.fromkeys(counts), "status": status, "reason": reason}, {}, {}
    )


def write(path: Path, cells: Sequence[CellRows]) -> None:
    """Commit the cells to a run directory."""
    planned = [PlannedCell(cell.cell_id, cell.cell_id) for cell in cells]
    with RunDirectory.create(
        path,
        suite="synthetic",
        suite_yaml="name: synthetic\n",
        environment_id="e",
        environment={},
        planned=planned,
    ) as run:
        for cell in cells:
            run.commit(cell.cell_id, cell.row, cell.requests, cell.rounds)


def _cell(
    scenario: Scenario,
    spec: ArmSpec,
    shift: np.ndarray[Any, Any],
    rng: np.random.Generator,
    place: dict[str, Any],
    key: str,
) -> CellRows:
    n, gamma = scenario.prompts, spec.gamma
    verified = gamma if spec.verified is None else spec.verified
    length = scenario.output_tokens
    base = np.asarray(spec.conditional, dtype=float)
    chance = 1 / (1 + np.exp(-(np.log(base / (1 - base)) + shift[:, None]))) if gamma else np.zeros((n, 0))
    most = length - 1  # rounds, at one token a round
    kept = (rng.random((n, most, verified)) < chance[:, None, :verified]).cumprod(axis=2)
    accepted = kept.sum(axis=2)
    stops = (rng.random((n, most, verified)) < scenario.stop_chance) & (kept > 0)
    stopped = np.asarray(stops.any(axis=2))
    if verified:
        accepted = np.where(stopped, stops.argmax(axis=2) + 1, accepted)
    emitted = accepted + 1 - stopped
    produced = 1 + emitted.cumsum(axis=1)
    over = np.asarray((produced >= length) | (stopped.cumsum(axis=1) > 0))
    rounds = over.argmax(axis=1) + 1  # the last round is the first that reaches the limit or a stop token
    output = np.minimum(produced[np.arange(n), rounds - 1], length)
    pace = spec.round_s * (1 + 0.02 * place["concurrency"])
    pace *= np.exp(rng.normal(0, scenario.noise, n) + rng.normal(0, scenario.repeat_noise))
    first = 0.1 + 0.01 * rng.random(n)
    live = np.arange(most) < rounds[:, None]
    request, index = np.nonzero(live)
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    counts = {
        "drafted": np.full(len(request), gamma),
        "verified": np.full(len(request), verified),
        "accepted": accepted[live],
    }
    start = np.arange(n) // place["concurrency"] * float((rounds * pace + first).mean())
    round_rows = {
        "request": request,
        "round": index,
        **counts,
        "ended_by_stop": stopped[live],
        "end_s": (start + first)[request] + (index + 1) * pace[request],
    }
    request_rows = {
        "request": np.arange(n),
        "prompt_sha256": [f"{place['dataset']}-{i}" for i in range(n)],
        "prompt_tokens": np.full(n, 40),
        "output_tokens": output,
        "finish_reason": np.where(stopped[np.arange(n), rounds - 1], "stop", "length"),
        "seed": np.arange(n),
        "arrival_s": start,
        "admitted_s": start,
        "first_token_s": start + first,
        "last_token_s": start + first + rounds * pace,
        "rounds": rounds,
        **{k: np.bincount(request, weights=v, minlength=n).astype(int) for k, v in counts.items()},
    }
    row = {
        "cell_id": name,
        "suite": "synthetic",
        "target": "toy",
        "target_source": "path:toy",
        "drafter": "none" if not gamma else place["arm"],
        "drafter_options": "{}",
        "scheduler": "fixed",
        "scheduler_options": "{}",
        "block_size": gamma,
        **place,
        "temperature": scenario.temperature,
        "top_k": 0,
        "top_p": 1.0,
        "seed": scenario.seed,
        "max_new_tokens": length,
        "ignore_eos": False,
        "backend": spec.backend,
        "device": "cpu",
        "dtype": "float32",
        "environment_id": "e",
        "status": "ok",
        "reason": None,
        "wall_s": float((rounds * pace + first).sum() / place["concurrency"]),
        "requests": n,
        "output_tokens": int(output.sum()),
        "rounds": int(rounds.sum()),
        **{k: int(v.sum()) for k, v in counts.items()},
    }
    return CellRows(
        name, row, {k: list(v) for k, v in request_rows.items()}, {k: list(v) for k, v in round_rows.items()}
    )
