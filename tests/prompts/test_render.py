"""Chat templates: applied once, thinking off, the same ids tomorrow."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from harness.errors import BenchError
from harness.models.load import load_tokenizer
from harness.models.resolve import ResolvedModel
from harness.prompts.load import load_prompts
from harness.prompts.prompt import Prompt
from harness.prompts.render import prompts_sha256, render
from harness.suites.schema import Dataset

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)
GEMMA = (
    "{{ bos_token }}"
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}<start_of_turn>{{ m.role }}\n{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
BRACKETS = "{% for m in messages %}{{ bos_token }}[INST] {{ m.content }} [/INST]{% endfor %}"
DATED = "{{ strftime_now('%d %b %Y') }}|{% for m in messages %}{{ m.content }}{% endfor %}|"
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>"]


def _tokenizer(template: str | None) -> PreTrainedTokenizerBase:
    """Bytes and a few special tokens; adds <s> in front when asked for special tokens."""
    vocabulary = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    backend = Tokenizer(models.BPE({token: i for i, token in enumerate(vocabulary)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", additional_special_tokens=SPECIAL[2:]
    )
    tokenizer.chat_template = template
    return tokenizer


def _render(
    template: str | None, *texts: str, thinking: bool = False, system: str | None = None
) -> list[str]:
    prompts = [Prompt(text, "chat") for text in texts]
    return [each.text for each in render(prompts, _tokenizer(template), thinking=thinking, system=system)]


def test_template_with_thinking_off_and_on() -> None:
    asked = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert _render(CHATML, "Hi") == [asked + "<think>\n\n</think>\n\n"]
    assert _render(CHATML, "Hi", thinking=True) == [asked]


def test_system_prompt() -> None:
    (text,) = _render(CHATML, "Hi", thinking=True, system="Be brief.")
    assert text.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi")


@pytest.mark.parametrize("template", [CHATML, GEMMA, BRACKETS])
def test_ids_are_those_of_the_template_and_nothing_is_added(template: str) -> None:
    tokenizer = _tokenizer(template)
    (rendered,) = render([Prompt("Hi, ça va?", "chat")], tokenizer, thinking=False, system=None)
    direct = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi, ça va?"}],
        add_generation_prompt=True,
        enable_thinking=False,
        return_dict=False,
    )
    assert list(rendered.ids) == direct
    assert rendered.ids.count(0) == template.count("bos_token"), "one <s> where the template writes one"
    assert rendered.sha256 == hashlib.sha256(np.array(rendered.ids, dtype="<i4").tobytes()).hexdigest()


def test_without_a_template_the_plain_text_gets_its_special_tokens() -> None:
    tokenizer = _tokenizer(None)
    (rendered,) = render([Prompt("Hi", "chat")], tokenizer, thinking=False, system=None)
    assert (rendered.text, tokenizer.convert_ids_to_tokens(list(rendered.ids))) == ("Hi", ["<s>", "H", "i"])


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (CHATML, "<|im_start|>user\nHi<|im_end|>\n"),
        (CHATML, "Hi<|im_end|>"),
        (GEMMA, "<start_of_turn>user\nHi<end_of_turn>\n"),
        (BRACKETS, "[INST] Hi [/INST]"),
    ],
)
def test_a_prompt_that_went_through_the_template_is_refused(template: str, text: str) -> None:
    with pytest.raises(BenchError, match=r"^Prompt 2 \(.*already contains .* applied twice"):
        _render(template, "Plain", text)
    with pytest.raises(BenchError, match=r"^`system` already contains"):
        _render(template, "Plain", system=text)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (CHATML, "What do the user, the assistant and the model do? <b>Bold</b> <s>struck</s>"),
        (GEMMA, "Describe the user and the model. <s>struck</s>"),
        (GEMMA, "What does <|im_start|> mean?"),  # another model's marker is plain text here
        (BRACKETS, "What does [INST] mean? <s>struck</s>"),
    ],
)
def test_plain_prompts_that_look_a_little_like_markers_pass(template: str, text: str) -> None:
    assert text in _render(template, text)[0]


def test_the_date_does_not_change_the_ids() -> None:
    assert _render(DATED, "Hi") == ["26 Jul 2024|Hi|"]


@pytest.mark.parametrize(
    ("template", "thinking", "system", "says"),
    [
        (GEMMA, True, None, "no thinking mode"),
        (None, True, None, "no chat template"),
        (None, False, "Be brief.", "`system`, but the target's tokenizer has no chat template"),
        (GEMMA, False, "Be brief.", "System role not supported.*Remove `system`"),
        ("{{ messages[-1].content }}:", False, "Be brief.", "leaves the system prompt out"),
    ],
)
def test_what_the_template_cannot_do(
    template: str | None, thinking: bool, system: str | None, says: str
) -> None:
    with pytest.raises(BenchError, match=says):
        _render(template, "Hi", thinking=thinking, system=system)


def test_hash_of_all_prompts_tells_order_and_borders() -> None:
    tokenizer = _tokenizer("{{ messages[-1].content }}")

    def whole(*texts: str) -> str:
        prompts = [Prompt(text, "chat") for text in texts]
        return prompts_sha256(render(prompts, tokenizer, thinking=False, system=None))

    assert whole("ab", "c") == whole("ab", "c")
    assert len({whole("ab", "c"), whole("c", "ab"), whole("a", "bc"), whole("abc"), whole("ab")}) == 5


def test_smollm2(smollm2: ResolvedModel) -> None:
    """The real template and tokenizer on the packaged prompts."""
    tokenizer = load_tokenizer(smollm2)
    prompts = load_prompts(Dataset(source="builtin:math"), Path())
    rendered = render(prompts, tokenizer, thinking=False, system=None)
    assert rendered[0].text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        f"<|im_start|>user\n{prompts[0].text}<|im_end|>\n<|im_start|>assistant\n"
    )
    assert rendered[0].ids[:3] == (1, 9690, 198) and max(max(each.ids) for each in rendered) < 49152
    assert all(tokenizer.decode(list(each.ids)) == each.text for each in rendered)
    again = [Prompt(rendered[0].text, "math")]
    with pytest.raises(BenchError, match=r"applied twice"):
        render(again, tokenizer, thinking=False, system=None)
