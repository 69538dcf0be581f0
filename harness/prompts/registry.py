"""The registered data sets: where each lies on the hub, at which revision, and how a row becomes a prompt.

The texts are those of DeepSpec's evaluation prompts, so that accepted lengths compare with published ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class HubSet:
    """One split of a data set on the hub, as files of one pinned revision."""

    repository: str
    revision: str
    files: tuple[str, ...]  # in the repository, of one kind: .parquet or .jsonl
    columns: tuple[str, ...]  # those that `text` reads
    text: Callable[[Row], str]
    domain: str


def _step_by_step(column: str) -> Callable[[Row], str]:
    suffix = "\nPlease reason step by step, and put your final answer within \\boxed{}."
    return lambda row: row[column] + suffix


def _humaneval(row: Row) -> str:
    instruction = "Write a solution to the following problem and make sure that it passes the tests:"
    return f"{instruction}\n```python\n{row['prompt']}\n```"


def _livecodebench(row: Row) -> str:
    if row["starter_code"]:
        layout, code = "Use the following code structure:", row["starter_code"]
    else:
        layout, code = "Write your code in the following format:", "# YOUR CODE HERE"
    return (
        "You are an expert Python programmer. You will be given a question (problem specification) and will "
        "generate a correct Python program that matches the specification and passes all tests. "
        "You will NOT return anything except for the program\n\n"
        f"### Question:\n{row['question_content']}\n\n"
        f"### Format: {layout}\n```python\n{code}\n```\n\n"
        "### Answer: (use the provided format with backticks)"
    )


def _alpaca(row: Row) -> str:
    return f"{row['instruction']}\n\nInput:\n{row['input']}" if row["input"] else str(row["instruction"])


HUB_SETS: dict[str, HubSet] = {
    "gsm8k": HubSet(
        repository="openai/gsm8k",
        revision="740312add88f781978c0658806c59bc2815b9866",
        files=("main/test-00000-of-00001.parquet",),
        columns=("question",),
        text=_step_by_step("question"),
        domain="math",
    ),
    "math500": HubSet(
        repository="HuggingFaceH4/MATH-500",
        revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
        files=("test.jsonl",),
        columns=("problem",),
        text=_step_by_step("problem"),
        domain="math",
    ),
    "aime25": HubSet(
        repository="MathArena/aime_2025",
        revision="c94da77eb22bbd6439e62a323bec18493a421302",
        files=("data/train-00000-of-00001.parquet",),
        columns=("problem",),
        text=_step_by_step("problem"),
        domain="math",
    ),
    "humaneval": HubSet(
        repository="openai/openai_humaneval",
        revision="7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544",
        files=("openai_humaneval/test-00000-of-00001.parquet",),
        columns=("prompt",),
        text=_humaneval,
        domain="code",
    ),
    "mbpp": HubSet(
        repository="google-research-datasets/mbpp",
        revision="4bb6404fdc6cacfda99d4ac4205087b89d32030c",
        files=("sanitized/test-00000-of-00001.parquet",),
        columns=("prompt",),
        text=lambda row: str(row["prompt"]),
        domain="code",
    ),
    "livecodebench": HubSet(  # release v6: 1,055 problems in six files
        repository="livecodebench/code_generation_lite",
        revision="0fe84c3912ea0c4d4a78037083943e8f0c4dd505",
        files=("test.jsonl", *(f"test{part}.jsonl" for part in range(2, 7))),
        columns=("question_content", "starter_code"),
        text=_livecodebench,
        domain="code",
    ),
    "mt-bench": HubSet(
        repository="HuggingFaceH4/mt_bench_prompts",
        revision="e3a795c5e9a82ee40611c416b8a7786c73198991",
        files=("raw/question.jsonl",),
        columns=("prompt",),
        text=lambda row: str(row["prompt"][0]),
        domain="chat",
    ),
    "alpaca": HubSet(
        repository="tatsu-lab/alpaca",
        revision="dce01c9b08f87459cf36a430d809084718273017",
        files=("data/train-00000-of-00001-a09b74b3ef9c3b56.parquet",),
        columns=("instruction", "input"),
        text=_alpaca,
        domain="chat",
    ),
    "arena-hard": HubSet(  # version 2.0: 750 prompts
        repository="lmarena-ai/arena-hard-auto",
        revision="15f3746e21432264ce9b453999bde4f3c946d2e6",
        files=("data/arena-hard-v2.0/question.jsonl",),
        columns=("prompt",),
        text=lambda row: str(row["prompt"]),
        domain="chat",
    ),
}
