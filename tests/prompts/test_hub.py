"""The nine registered data sets, read for real from small files with the hub's own columns and layout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.errors import BenchError
from harness.prompts.hub import LOCAL
from harness.prompts.load import load_prompts
from harness.prompts.registry import HUB_SETS
from harness.suites.schema import Dataset

pytest.importorskip("datasets", reason="the registered data sets need the hub extra")

STEP = "\nPlease reason step by step, and put your final answer within \\boxed{}."
ASSERTS = ["assert add(1, 2) == 3"]


class Case(NamedTuple):
    rows: list[dict[str, Any]]  # every column the hub's files have
    texts: list[str]
    domain: str


CASES = {
    "gsm8k": Case(
        [{"question": "What is 2 {+} 2?", "answer": "#### 4"}, {"question": "And 3?", "answer": "#### 3"}],
        ["What is 2 {+} 2?" + STEP, "And 3?" + STEP],
        "math",
    ),
    "math500": Case(
        [
            {
                "problem": "Find $x$.",
                "solution": "Look.",
                "answer": "$x$",
                "subject": "Algebra",
                "level": 1,
                "unique_id": "test/algebra/1.json",
            }
        ],
        ["Find $x$." + STEP],
        "math",
    ),
    "aime25": Case(
        [{"problem_idx": 1, "problem": "Find $b$.", "answer": 70, "problem_type": ["Number Theory"]}],
        ["Find $b$." + STEP],
        "math",
    ),
    "humaneval": Case(
        [
            {
                "task_id": "HumanEval/0",
                "prompt": 'def f():\n    """One."""\n',
                "canonical_solution": "    return 1\n",
                "test": "def check(candidate): ...",
                "entry_point": "f",
            }
        ],
        [
            "Write a solution to the following problem and make sure that it passes the tests:\n"
            '```python\ndef f():\n    """One."""\n\n```'
        ],
        "code",
    ),
    "mbpp": Case(
        [
            {
                "source_file": "Benchmark Questions Verification V2.ipynb",
                "task_id": 2,
                "prompt": "Write a function to add.",
                "code": "def add(a, b): return a + b",
                "test_imports": [],
                "test_list": ASSERTS,
            }
        ],
        ["Write a function to add."],
        "code",
    ),
    "livecodebench": Case(
        [
            {
                "question_title": title,
                "question_content": f"Print {title}.",
                "platform": "codeforces",
                "question_id": title,
                "contest_id": "1",
                "contest_date": "2023-08-21T00:00:00",
                "starter_code": starter,
                "difficulty": "easy",
                "public_test_cases": "[]",
                "private_test_cases": "eJw=" * 1000,
                "metadata": "{}",
            }
            for title, starter in [("A", ""), ("B", "class Solution:\n    def b(self) -> int:\n        ")]
        ],
        [
            "You are an expert Python programmer. You will be given a question (problem specification) and "
            "will generate a correct Python program that matches the specification and passes all tests. "
            "You will NOT return anything except for the program\n\n"
            f"### Question:\nPrint {title}.\n\n### Format: {layout}\n```python\n{code}\n```\n\n"
            "### Answer: (use the provided format with backticks)"
            for title, layout, code in [
                ("A", "Write your code in the following format:", "# YOUR CODE HERE"),
                (
                    "B",
                    "Use the following code structure:",
                    "class Solution:\n    def b(self) -> int:\n        ",
                ),
            ]
        ],
        "code",
    ),
    "mt-bench": Case(
        [
            {"question_id": 81, "category": "writing", "prompt": ["Write.", "Again."]},
            {"question_id": 101, "category": "math", "prompt": ["Add.", "More."], "reference": ["3", "4"]},
        ],
        ["Write.", "Add."],
        "chat",
    ),
    "alpaca": Case(
        [
            {"instruction": "Name a colour.", "input": "", "output": "Red.", "text": "..."},
            {"instruction": "Sort.", "input": "3, 1", "output": "1, 3", "text": "..."},
        ],
        ["Name a colour.", "Sort.\n\nInput:\n3, 1"],
        "chat",
    ),
    "arena-hard": Case(
        [
            {
                "uid": "0a",
                "category": "hard_prompt",
                "subcategory": "coding",
                "language": "English",
                "prompt": "Write zig.",
            }
        ],
        ["Write zig."],
        "chat",
    ),
}


def _publish(root: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """Write the rows as the hub does, dealt out in order over the files of the registered set."""
    files = [root / HUB_SETS[name].repository / file for file in HUB_SETS[name].files]
    for number, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        part = rows[number * len(rows) // len(files) : (number + 1) * len(rows) // len(files)]
        if file.suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(part), file)
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LOCAL, str(tmp_path))
    return tmp_path


def _texts(name: str, limit: int | None = None) -> list[str]:
    return [prompt.text for prompt in load_prompts(Dataset(source=f"hf:{name}", limit=limit), Path())]


def test_every_registered_set_is_tested_and_pinned() -> None:
    assert CASES.keys() == HUB_SETS.keys()
    for registered in HUB_SETS.values():
        assert len(registered.revision) == 40 and set(registered.revision) <= set("0123456789abcdef")
        assert len({Path(file).suffix for file in registered.files}) == 1


@pytest.mark.parametrize("name", CASES)
def test_rows_become_prompts(root: Path, name: str) -> None:
    case = CASES[name]
    _publish(root, name, case.rows)
    prompts = load_prompts(Dataset(source=f"hf:{name}"), Path())
    assert [prompt.text for prompt in prompts] == case.texts
    assert {prompt.domain for prompt in prompts} == {case.domain}
    assert _texts(name, limit=1) == case.texts[:1]


def _column(name: str, text: str) -> dict[str, Any]:
    """The row that DeepSpec's prompt was made from, cut out by hand."""
    match name:
        case "gsm8k":
            return {"question": text.removesuffix(STEP), "answer": ""}
        case "math500" | "aime25":
            return {"problem": text.removesuffix(STEP), "answer": ""}
        case "humaneval":
            return {"prompt": text[text.index("```python\n") + 10 : text.rindex("```") - 1], "test": ""}
        case "livecodebench":
            question = text[text.index("### Question:\n") + 14 : text.rindex("\n\n### Format: ")]
            code = text[text.rindex("```python\n") + 10 : text.rindex("\n```\n\n### Answer")]
            return {"question_content": question, "starter_code": "" if code == "# YOUR CODE HERE" else code}
        case "mt-bench":
            return {"question_id": 1, "prompt": [text, "And then?"]}
        case _:
            return {"prompt": text}


@pytest.mark.parametrize("name", sorted(HUB_SETS.keys() - {"alpaca"}))
def test_same_prompts_as_deepspec(root: Path, evaluation_prompts: Path, name: str) -> None:
    file = evaluation_prompts / f"{'arena-hard-v2' if name == 'arena-hard' else name}.jsonl"
    expected = [json.loads(line)["turns"][0] for line in file.read_text(encoding="utf-8").split("\n") if line]
    _publish(root, name, [_column(name, text) for text in expected])
    assert _texts(name) == expected


def test_unknown_name_lists_the_registered() -> None:
    with pytest.raises(BenchError, match=r"'hf:gsm9k'.*aime25, alpaca, arena-hard, gsm8k, humaneval"):
        _texts("gsm9k")


def test_missing_file_says_how_to_get_it(root: Path) -> None:
    with pytest.raises(BenchError) as error:
        _texts("gsm8k")
    assert str(root / "openai/gsm8k/main/test-00000-of-00001.parquet") in str(error.value)
    assert f"hf download openai/gsm8k --repo-type dataset --revision {HUB_SETS['gsm8k'].revision}" in str(
        error.value
    )
    assert LOCAL in str(error.value)


def test_missing_column(root: Path) -> None:
    _publish(root, "gsm8k", [{"Question": "x"}])
    with pytest.raises(BenchError, match=r"'hf:gsm8k': the files in .* have no column 'question'"):
        _texts("gsm8k")


@pytest.mark.parametrize("name", ["gsm8k", "math500"])
def test_damaged_file(root: Path, name: str) -> None:
    _publish(root, name, CASES[name].rows)
    file = root / HUB_SETS[name].repository / HUB_SETS[name].files[0]
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(BenchError, match=f"'hf:{name}': the files in .* cannot be read"):
        _texts(name)


@pytest.mark.parametrize("name", ["arena-hard", "livecodebench"])
def test_empty_set(root: Path, name: str) -> None:
    _publish(root, name, [])
    with pytest.raises(BenchError, match=f"'hf:{name}' is empty"):
        _texts(name)


def test_missing_datasets_package_says_what_to_install(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)  # what `import datasets` sees when it is not installed
    with pytest.raises(BenchError, match=r"pip install 'dspark-bench\[hub\]'"):
        _texts("gsm8k")


def _load_elsewhere(cache: Path, **settings: str) -> str:
    """In another process: the hub's client reads its settings once, when it is imported."""
    program = (
        "from pathlib import Path; from harness.errors import BenchError\n"
        "from harness.prompts.load import load_prompts; from harness.suites.schema import Dataset\n"
        "try: print([p.text for p in load_prompts(Dataset(source='hf:mt-bench'), Path())])\n"
        "except BenchError as error: print('refused', error)"
    )
    environment = {key: value for key, value in os.environ.items() if key != LOCAL}
    finished = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment | {"HF_HUB_CACHE": str(cache), **settings},
    )
    return finished.stdout.strip()


def test_from_the_hubs_local_cache_without_a_network(tmp_path: Path) -> None:
    registered = HUB_SETS["mt-bench"]
    _publish(tmp_path, "mt-bench", CASES["mt-bench"].rows)
    snapshots = tmp_path / f"datasets--{registered.repository.replace('/', '--')}" / "snapshots"
    snapshots.mkdir(parents=True)
    (tmp_path / registered.repository).rename(snapshots / registered.revision)
    assert _load_elsewhere(tmp_path, HF_HUB_OFFLINE="1") == str(CASES["mt-bench"].texts)


@pytest.mark.parametrize("settings", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}])
def test_hub_that_cannot_be_reached(tmp_path: Path, settings: dict[str, str]) -> None:
    answer = _load_elsewhere(tmp_path, **settings)
    assert answer.startswith("refused 'hf:mt-bench': ")
    assert "hf download HuggingFaceH4/mt_bench_prompts --repo-type dataset" in answer
    assert "HF_HOME" in answer and f"{LOCAL}=" in answer
