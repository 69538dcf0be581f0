"""Packaged prompts and files of one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.errors import BenchError
from harness.prompts.load import BUILTIN, load_prompts
from harness.prompts.prompt import Prompt
from harness.prompts.registry import HUB_SETS
from harness.suites.schema import Dataset


def _builtin(name: str) -> list[Prompt]:
    return load_prompts(Dataset(source=f"builtin:{name}"), Path("/nowhere"))


@pytest.mark.parametrize("name", BUILTIN)
def test_builtin_sets_have_thirty_different_prompts(name: str) -> None:
    prompts = _builtin(name)
    assert len(prompts) == len({prompt.text for prompt in prompts}) == 30
    assert {prompt.domain for prompt in prompts} == {name}
    assert all(prompt.text == prompt.text.strip() for prompt in prompts)


def test_builtin_prompts_are_not_evaluation_prompts(evaluation_prompts: Path) -> None:
    """No run of nine words is shared with any evaluation or training prompt."""

    def runs(text: str) -> set[str]:
        words = re.findall(r"\w+", text.lower())
        return {" ".join(words[i : i + 9]) for i in range(len(words) - 8)}

    ours = {run: prompt.text for name in BUILTIN for prompt in _builtin(name) for run in runs(prompt.text)}
    for file in sorted(evaluation_prompts.glob("*.jsonl")):
        for line in filter(None, file.read_text(encoding="utf-8").split("\n")):
            for turn in json.loads(line)["turns"]:
                assert not [ours[run] for run in runs(turn) & ours.keys()], file.name


def _write(folder: Path, *lines: str) -> Path:
    file = folder / "mine.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_jsonl_gives_first_turns_in_order(tmp_path: Path) -> None:
    _write(
        tmp_path,
        '{"turns": ["one", "and then?"]}',
        "",
        '{"turns": [" two\\n"], "id": 7}',
        json.dumps({"turns": ["line\u2028separator"]}, ensure_ascii=False),
    )
    prompts = load_prompts(Dataset(source="jsonl:mine.jsonl"), tmp_path)
    assert prompts == [Prompt("one", "mine"), Prompt(" two\n", "mine"), Prompt("line\u2028separator", "mine")]


def test_limit_and_domain(tmp_path: Path) -> None:
    file = _write(tmp_path, '{"turns": ["one"]}', '{"turns": ["two"]}', "not read")
    dataset = Dataset(source=f"jsonl:{file}", domain="law", limit=2)
    assert load_prompts(dataset, Path("/nowhere")) == [Prompt("one", "law"), Prompt("two", "law")]
    assert len(load_prompts(Dataset(source="builtin:code", limit=7), tmp_path)) == 7
    assert len(load_prompts(Dataset(source="builtin:code", limit=700), tmp_path)) == 30


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"turns": ["x"]', "not valid JSON"),
        ('{"prompt": "x"}', "needs `turns`"),
        ('["x"]', "needs `turns`"),
        ('{"turns": []}', "needs `turns`"),
        ('{"turns": "x"}', "needs `turns`"),
        ('{"turns": [3]}', "needs `turns`"),
        ('{"turns": ["  "]}', "needs `turns`"),
    ],
)
def test_malformed_line_names_file_and_line(tmp_path: Path, line: str, says: str) -> None:
    file = _write(tmp_path, '{"turns": ["fine"]}', "", line)
    with pytest.raises(BenchError, match=f"^{re.escape(str(file))}, line 3: {says}"):
        load_prompts(Dataset(source="jsonl:mine.jsonl"), tmp_path)


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_empty_file(tmp_path: Path, content: str) -> None:
    _write(tmp_path, content)
    with pytest.raises(BenchError, match=r"'jsonl:mine\.jsonl' is empty"):
        load_prompts(Dataset(source="jsonl:mine.jsonl"), tmp_path)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"absent\.jsonl: cannot be read: No such file"):
        load_prompts(Dataset(source="jsonl:absent.jsonl"), tmp_path)
    (tmp_path / "latin.jsonl").write_bytes(b'{"turns": ["caf\xe9"]}')
    with pytest.raises(BenchError, match=r"latin\.jsonl: not UTF-8 at byte 15"):
        load_prompts(Dataset(source="jsonl:latin.jsonl"), tmp_path)


@pytest.mark.parametrize("source", ["math", "builtin:physics", "builtin:", "jsonl:", "csv:x", ""])
def test_unknown_set_lists_what_exists(source: str) -> None:
    with pytest.raises(BenchError) as error:
        load_prompts(Dataset(source=source), Path())
    assert repr(source) in str(error.value)
    assert all(f"builtin:{name}" in str(error.value) for name in BUILTIN)
    assert all(f"hf:{name}" in str(error.value) for name in HUB_SETS)
    assert "jsonl:" in str(error.value)
