"""What a whole `bench run` leaves behind, worked out again from the rows by plain loops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from harness.store.frames import Frames
from tests.executors.workbench import PROMPTS, STOP_TOKENS, Models, Workbench

ARMS = ("target-only", "n-gram", "draft-model")
TOKENS = 24
BLOCK = {"target-only": 0, "n-gram": 4, "draft-model": 3}
CELLS = 2 * 2 * 2 * len(ARMS)


@pytest.fixture(scope="module")
def bench(models: Models, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A complete run: two data sets, two concurrencies, three arms, two repeats."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        workbench = Workbench(folder, models)
        workbench.measure(workbench.suite(matrix={"concurrency": [1, 3], "repeats": 2}))
        yield workbench


@pytest.fixture(scope="module")
def frames(bench: Workbench) -> Frames:
    return bench.frames


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def by_cell(frame: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in records(frame):
        found.setdefault(row["cell_id"], []).append(row)
    return found


def test_every_planned_cell_is_ok(bench: Workbench, frames: Frames) -> None:
    planned = json.loads((bench.run / "run.json").read_text())["cells"]
    assert len(planned) == CELLS
    assert frames.cells["cell_id"].tolist() == [cell["cell_id"] for cell in planned]
    assert set(frames.cells["status"]) == {"ok"} and frames.cells["reason"].isna().all()
    assert frames.cells["started_at"].is_monotonic_increasing  # in the planned order
    order = frames.cells["arm"].tolist()
    assert order[:3] == list(ARMS) and order[3:6] == [*ARMS[1:], ARMS[0]]  # interleaved


def test_requests_are_the_sums_of_their_rounds(frames: Frames) -> None:
    rounds = by_cell(frames.rounds)
    for request in records(frames.requests):
        own = [r for r in rounds[request["cell_id"]] if r["request"] == request["request"]]
        assert [r["round"] for r in own] == list(range(request["rounds"]))
        for count in ("drafted", "verified", "accepted"):
            assert sum(r[count] for r in own) == request[count]
        output = list(request["output_ids"])
        assert len(output) == request["output_tokens"]
        emitted = [token for r in own for token in r["emitted_ids"]]
        assert output[1:] == emitted  # the first token is the prefill's
        length = request["prompt_tokens"] + 1
        for r in own:
            assert r["context_length"] == length
            length += len(r["emitted_ids"])
            assert len(r["draft_ids"]) == r["drafted"] >= r["verified"] >= r["accepted"] >= 0
            taken = list(r["draft_ids"])[: r["accepted"]]
            whole = [*taken] if r["ended_by_stop"] else [*taken, r["emitted_ids"][-1]]
            cut = length == request["prompt_tokens"] + TOKENS
            assert list(r["emitted_ids"]) == whole or (
                cut and list(r["emitted_ids"]) == taken[: len(r["emitted_ids"])]
            )
            assert 1 <= r["step_requests"] <= 3
        assert output[-1] in STOP_TOKENS if request["finish_reason"] == "stop" else len(output) == TOKENS
        times = [request[f"{name}_s"] for name in ("arrival", "admitted", "first_token", "last_token")]
        assert times == sorted(times) and times[-1] == (own[-1]["end_s"] if own else times[-2])
    assert set(frames.requests["finish_reason"]) == {"stop", "length"}
    assert frames.rounds["ended_by_stop"].any()


def test_cells_are_worked_out_again_from_their_rows(frames: Frames) -> None:
    requests, rounds = by_cell(frames.requests), by_cell(frames.rounds)
    for cell in records(frames.cells):
        mine, its = requests[cell["cell_id"]], rounds[cell["cell_id"]]
        assert cell["requests"] == len(mine) == len(PROMPTS[cell["dataset"]])
        for name in ("prompt_tokens", "output_tokens", "rounds", "drafted", "verified", "accepted"):
            assert cell[name] == sum(request[name] for request in mine)
        assert cell["steps"] == len({r["step"] for r in its})
        for step in {r["step"] for r in its}:
            together = [r for r in its if r["step"] == step]
            assert all(r["step_requests"] == len(together) <= cell["concurrency"] for r in together)
            assert all(r["step_tokens"] == sum(1 + q["verified"] for q in together) for r in together)
        assert cell["block_size"] == BLOCK[cell["arm"]] >= max(r["drafted"] for r in its)
        assert cell["wall_s"] == max(request["last_token_s"] for request in mine)
        assert cell["throughput"] == pytest.approx(cell["output_tokens"] / cell["wall_s"])
        emitted = [r["accepted"] + (0 if r["ended_by_stop"] else 1) for r in its]
        assert cell["tau"] == pytest.approx(sum(emitted) / len(emitted))
        decode_s = sum(q["last_token_s"] - q["first_token_s"] for q in mine)
        assert cell["tok_s_user"] == pytest.approx(sum(q["output_tokens"] - 1 for q in mine) / decode_s)
        if cell["arm"] != "target-only":
            assert cell["tau_low"] <= cell["tau"] <= cell["tau_high"]
        assert cell["ttft_p50_s"] == pytest.approx(median(q["first_token_s"] - q["arrival_s"] for q in mine))
        tpot = [(q["last_token_s"] - q["first_token_s"]) / (q["output_tokens"] - 1) for q in mine]
        assert cell["tpot_p50_s"] == pytest.approx(median(tpot))
        assert (cell["device"], cell["dtype"], cell["warmup_s"]) == ("cpu", "float32", 0.0)
    assert (frames.cells.loc[frames.cells["arm"] == "target-only", "tau"] == 1.0).all()
    assert (frames.cells.loc[frames.cells["arm"] == "draft-model", "tau"] > 1.2).all()


def test_all_arms_decode_what_the_model_itself_does(models: Models, frames: Frames) -> None:
    tokenizer = AutoTokenizer.from_pretrained(models.target)
    model: Any = AutoModelForCausalLM.from_pretrained(models.target, dtype=torch.float32)
    cells = {cell["cell_id"]: cell for cell in records(frames.cells)}
    expected = {}
    for dataset, texts in PROMPTS.items():
        for number, text in enumerate(texts):
            prompt = tokenizer(
                f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n", return_tensors="pt"
            )
            ids = model.generate(**prompt, max_new_tokens=TOKENS, do_sample=False)[0].tolist()
            expected[dataset, number] = (prompt["input_ids"].shape[1], ids[prompt["input_ids"].shape[1] :])
    for request in records(frames.requests):
        found = (request["prompt_tokens"], list(request["output_ids"]))
        assert found == expected[cells[request["cell_id"]]["dataset"], request["request"]]


def test_machine_suite_and_engine_are_on_disk_before_the_first_measurement(
    bench: Workbench, frames: Frames
) -> None:
    run = bench.run
    tables = [file for name in ("rounds", "requests", "cells") for file in (run / name).iterdir()]
    assert len(tables) == 3 * CELLS
    first = min(file.stat().st_mtime_ns for file in tables)
    (environment,) = (run / "environments").iterdir()
    assert [environment.stem] == frames.cells["environment_id"].unique().tolist()
    for file in (environment, run / "suite.yaml", run / "run.json"):
        assert file.stat().st_mtime_ns < first
    for cell in records(frames.cells):
        engine = run / "engines" / f"{cell['cell_id']}.json"
        assert engine.stat().st_mtime_ns < (run / "rounds" / f"{cell['cell_id']}.parquet").stat().st_mtime_ns
        live = json.loads(engine.read_text())
        assert (live["device"], live["dtype"]) == ("cpu", "float32")
        assert live["rows"] == min(cell["concurrency"], cell["requests"])
        assert (live["drafter"] or {"name": "none"})["name"] == cell["drafter"]


def test_json_is_the_only_thing_on_standard_output(bench: Workbench) -> None:
    answer = bench.invoke("run", bench.folder / "tiny.yaml", "--json")
    assert answer.exit_code == 0
    assert answer.stdout.count("\n") == 1
    document = json.loads(answer.stdout)
    assert (document["run"], document["planned"], document["failed"]) == (str(bench.run), CELLS, 0)
    assert {row["arm"] for row in document["rows"]} == set(ARMS)
    assert f"{CELLS} of {CELLS} cells are measured already, 0 to do" in answer.stderr


def test_progress_is_a_plain_line_a_cell_where_there_is_no_terminal(workbench: Workbench) -> None:
    suite = workbench.suite(arms=workbench.arms("target-only"), description="odd [/] words")
    answer = workbench.invoke("run", suite)
    assert answer.exit_code == 0 and answer.stdout == ""
    assert "\x1b" not in answer.stderr and "\r" not in answer.stderr
    lines = answer.stderr.splitlines()
    assert lines[0] == "tiny: odd [/] words"
    cells = [line for line in lines if line.startswith(("1/2 ", "2/2 "))]
    names = [f"llama · {name} · concurrency 1 · temperature 0 · target-only · repeat 0" for name in PROMPTS]
    assert [line.partition(": ")[0] for line in cells] == [f"1/2 {names[0]}", f"2/2 {names[1]}"]
    assert "tok/s, accepted length 1.00, " in cells[0] and cells[0].endswith(" left)")
    assert cells[1].endswith("(nothing left)")


def test_requests_of_one_token_have_no_rounds(workbench: Workbench) -> None:
    workbench.measure(workbench.suite(defaults={"max_new_tokens": 1}))
    frames = workbench.frames
    assert set(frames.cells["status"]) == {"ok"} and frames.cells["tau"].isna().all()
    assert len(frames.rounds) == 0 and set(frames.requests["output_tokens"]) == {1}


def test_sampled_outputs_depend_on_seed_and_repeat_and_not_on_concurrency(workbench: Workbench) -> None:
    arms, matrix = workbench.arms("target-only"), {"temperature": [1.0], "concurrency": [1, 3], "repeats": 2}
    workbench.measure(workbench.suite(arms=arms, matrix=matrix))
    joined = workbench.frames.requests.merge(workbench.frames.cells, on="cell_id")
    outputs: dict[tuple[str, int], list[set[tuple[int, ...]]]] = {}
    for row in records(joined):
        of = outputs.setdefault((row["dataset"], row["request"]), [set(), set()])
        of[row["repeat"]].add(tuple(row["output_ids"]))
    for first, second in outputs.values():
        assert len(first) == len(second) == 1 and first != second


def test_a_run_is_named_and_placed_as_told(workbench: Workbench) -> None:
    suite = workbench.suite(arms=workbench.arms("target-only"))
    document = workbench.measure(suite, "--run", "mine")
    assert document["run"] == str(workbench.results / "tiny/mine")
    assert workbench.runs() == [Path(document["run"])]
