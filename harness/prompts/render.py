"""From a prompt's text to the token ids every arm sees, through the target's chat template, once."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import BenchError
from harness.prompts.prompt import Prompt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Some templates print today's date. A fixed one keeps the ids, and with them the cell, the same tomorrow.
_TODAY = datetime(2024, 7, 26)
_PROBE = "dsparkbenchprobe"  # a text no template contains


class RenderedPrompt(NamedTuple):
    """A prompt as the target reads it."""

    ids: tuple[int, ...]
    sha256: str  # of the ids as little-endian int32
    text: str  # what the ids were made from


def render(
    prompts: Sequence[Prompt], tokenizer: PreTrainedTokenizerBase, *, thinking: bool, system: str | None
) -> list[RenderedPrompt]:
    """Apply the tokenizer's chat template to each prompt and encode the result.

    `thinking` is the template's thinking mode, `system` a system prompt (None: the template's own). A
    tokenizer without a chat template encodes the plain text with its special tokens. Raises `BenchError` when
    a prompt already went through the template, or the template knows no thinking mode or no system prompt.
    """
    if tokenizer.chat_template is None:
        return [_plain(prompt, tokenizer, thinking, system) for prompt in prompts]
    template: str = tokenizer.get_chat_template()
    if thinking and "thinking" not in template:
        raise BenchError("`thinking: true`, but the target's chat template has no thinking mode: remove it.")
    markers = _Markers.of(tokenizer, thinking)
    if system is not None:
        _check_plain(system, "`system`", markers)
    rendered = []
    for number, prompt in enumerate(prompts, start=1):
        _check_plain(prompt.text, f"Prompt {number} ({prompt.text[:40]!r}...)", markers)
        text = _apply(prompt.text, tokenizer, thinking, system)
        if system is not None and system.strip() not in text:
            raise BenchError("The target's chat template leaves the system prompt out: remove `system`.")
        rendered.append(_encode(text, tokenizer, special=False))
    return rendered


def prompts_sha256(rendered: Sequence[RenderedPrompt]) -> str:
    """Hash of all rendered prompts in order: equal when two cells start from the same ids."""
    return hashlib.sha256("".join(prompt.sha256 for prompt in rendered).encode()).hexdigest()


class _Markers(NamedTuple):
    """What shows that a text already went through the template."""

    special: tuple[str, ...]  # special tokens it writes, such as <|im_start|>
    before: str  # what it writes before the user's text, when that is plain text such as [INST]
    after: str  # and after it, such as [/INST]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> _Markers:
        # A leading <s> proves nothing: it is as well HTML for struck-out text.
        around = _apply(_PROBE, tokenizer, thinking, system=None).removeprefix(tokenizer.bos_token or "")
        added = tokenizer.added_tokens_decoder.values()
        special = tuple(token.content for token in added if token.special and token.content in around)
        before, _, after = around.partition(_PROBE)
        return cls(special, before.strip(), after.strip())

    def found_in(self, text: str) -> str | None:
        if not self.special and self.before and self.after and self.before in text and self.after in text:
            return self.before
        return next((token for token in self.special if token in text), None)


def _check_plain(text: str, what: str, markers: _Markers) -> None:
    if marker := markers.found_in(text):
        raise BenchError(
            f"{what} already contains {marker!r} of the target's chat template, which would be applied "
            "twice: give the plain text only."
        )


def _apply(text: str, tokenizer: PreTrainedTokenizerBase, thinking: bool, system: str | None) -> str:
    messages = [] if system is None else [{"role": "system", "content": system}]
    messages.append({"role": "user", "content": text})
    try:
        rendered = tokenizer.apply_chat_template(
            messages,
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=thinking,  # Qwen, Gemma
            thinking=thinking,  # DeepSeek
            strftime_now=_TODAY.strftime,
        )
    except Exception as error:  # jinja2's, raised by the template itself for roles it does not know
        mend = "Remove `system`." if system is not None else "Use a model with a usable template."
        raise BenchError(f"The target's chat template refuses the prompt ({error}). {mend}") from error
    return str(rendered)


def _plain(
    prompt: Prompt, tokenizer: PreTrainedTokenizerBase, thinking: bool, system: str | None
) -> RenderedPrompt:
    if thinking or system is not None:
        key = "thinking: true" if thinking else "system"
        raise BenchError(f"`{key}`, but the target's tokenizer has no chat template: remove it.")
    return _encode(prompt.text, tokenizer, special=True)


def _encode(text: str, tokenizer: PreTrainedTokenizerBase, *, special: bool) -> RenderedPrompt:
    ids = tuple(tokenizer(text, add_special_tokens=special)["input_ids"])
    return RenderedPrompt(ids, hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest(), text)
