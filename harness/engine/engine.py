"""Continuous batching with speculative decoding: draft, schedule, verify, accept, for all requests in flight."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from harness.engine.arrivals import Arrivals
from harness.engine.attention import PackedBatch
from harness.engine.contracts import DraftBatch, Drafter, Load, Outcome, Proposal, Scheduler
from harness.engine.decoder import PackedDecoder
from harness.engine.request import RequestState, Round
from harness.engine.rng import Stream, uniforms
from harness.engine.sampling import Sampling, draw, probabilities
from harness.engine.slots import Slots
from harness.engine.verify import verify

# Prompt tokens a prefill step reads at most; a longer prompt is read in several, decode steps in between.
PREFILL_TOKENS = 512


@dataclass(frozen=True)
class Speculation:
    """A drafter and the scheduler that decides how much of its blocks is verified."""

    drafter: Drafter
    scheduler: Scheduler


@dataclass(frozen=True)
class _StepTimes:
    """Seconds of a decode step, and the instant it ended."""

    draft: float
    schedule: float
    verify: float
    sample: float
    end: float


class Engine:
    """Runs requests on one target with one arm. Not reusable across arms; `run` may be called again and again."""

    def __init__(
        self,
        target: PackedDecoder,
        *,
        rows: int,
        capacity: int,
        sampling: Sampling,
        stop_tokens: Sequence[int] = (),
        slots: Slots | None = None,
        speculation: Speculation | None = None,
    ) -> None:
        """rows: requests in flight at most. capacity: tokens a request can reach, its last block included.

        stop_tokens: ids that end a request; they are part of its output. slots: the bookkeeping that the
        drafter's caches are attached to.
        """
        self.target, self.rows, self.sampling = target, rows, sampling
        self.stop_tokens = frozenset(stop_tokens)
        self.speculation = speculation
        self.steps = 0
        self._slots = Slots() if slots is None else slots
        self._cache = target.new_cache(rows, capacity)
        self._slots.attach(self._cache)
        self._capture = speculation.drafter.needs.layers if speculation else ()
        self._prompt_features: dict[int, list[torch.Tensor]] = {}
        self._zero = 0.0

    def run(
        self, arrivals: Arrivals, on_finish: Callable[[RequestState], None] = lambda state: None
    ) -> list[RequestState]:
        """Decode all requests and return their states in the order they finished.

        Instants in the states count from the start of the call. on_finish is called as each request ends.
        """
        finished: list[RequestState] = []

        def finish(state: RequestState) -> None:
            finished.append(state)
            on_finish(state)

        self.steps, self._zero = 0, time.perf_counter()
        with torch.inference_mode():
            while len(arrivals) or len(self._slots):
                if not len(self._slots) and arrivals.next_at > self._now():
                    time.sleep(max(0.0, arrivals.next_at - self._now()))
                for state in arrivals.take(self._now(), self.rows - len(self._slots)):
                    self._slots.admit(state)
                if self._slots.prefilling:
                    self._prefill_step(finish)
                if self._slots.decoding:
                    self._decode_step(finish)
        return finished

    def _now(self) -> float:
        """Seconds since the run began, after the device has done all it was given."""
        if self.target.device.type == "cuda":
            torch.cuda.synchronize(self.target.device)
        return time.perf_counter() - self._zero

    def _prefill_step(self, finish: Callable[[RequestState], None]) -> None:
        """Read up to PREFILL_TOKENS prompt tokens, oldest request first, and draw the first token of those done."""
        states, lengths, budget = [], [], PREFILL_TOKENS
        now = self._now()
        for state in self._slots.prefilling:
            if budget == 0:
                break
            if state.prefilled == 0:
                state.admitted_s = now
            lengths.append(min(budget, len(state.request.prompt) - state.prefilled))
            states.append(state)
            budget -= lengths[-1]
        batch = PackedBatch(self._cache, states[0].row, [s.prefilled for s in states], lengths)
        tokens = [
            t for s, n in zip(states, lengths, strict=True) for t in s.request.prompt[s.prefilled :][:n]
        ]
        hidden = self.target.forward(self._tensor(tokens), batch, self._capture)
        if hidden.features is not None:
            for state, part in zip(states, torch.split(hidden.features, lengths), strict=True):
                self._prompt_features.setdefault(state.request.index, []).append(part)
        for state, length in zip(states, lengths, strict=True):
            state.prefilled += length
        done = [s for s in states if s.prefilled == len(s.request.prompt)]
        if done:
            logits = self.target.logits(hidden.last[batch.last_token[: len(done)]])
            self._first_tokens(done, logits, finish)

    def _first_tokens(
        self, done: list[RequestState], logits: torch.Tensor, finish: Callable[[RequestState], None]
    ) -> None:
        """Draw the token after each prompt; logits [N, V]. It belongs to no round: it is the first anchor."""
        if self.sampling.greedy:
            first = logits.argmax(-1)
        else:
            seeds = self._tensor([s.request.seed for s in done])
            u = uniforms(seeds, torch.full_like(seeds, -1), 1, Stream.TARGET)[:, 0]
            first = draw(probabilities(logits, self.sampling), u)
        self._slots.start_decoding(len(done))
        tokens, now = first.tolist(), self._now()
        for state, token in zip(done, tokens, strict=True):
            state.output.append(token)
            state.first_token_s = state.last_token_s = now
            state.finish_reason = self._finish_reason(state)
        if self.speculation:
            features = None
            if self._capture:
                features = [torch.cat(self._prompt_features.pop(s.request.index)) for s in done]
            self.speculation.drafter.begin(done, features)
        self._release([s for s in done if s.finish_reason], finish)

    def _decode_step(self, finish: Callable[[RequestState], None]) -> None:
        """One round of every decoding request."""
        states = self._slots.decoding
        batch = DraftBatch(
            requests=tuple(states),
            anchors=self._tensor([s.output[-1] for s in states]),
            lengths=self._tensor([s.context_length - 1 for s in states]),
            seeds=self._tensor([s.request.seed for s in states]),
            rounds=self._tensor([len(s.rounds) for s in states]),
            sampling=self.sampling,
        )
        begun = self._now()
        proposal = self._propose(batch)
        drafted = self._now()
        verified = self._plan(batch, proposal)
        scheduled = self._now()
        lengths = verified.tolist()
        packed = PackedBatch(self._cache, 0, batch.lengths.tolist(), [1 + n for n in lengths])
        block = torch.cat((batch.anchors[:, None], proposal.tokens), 1)  # [R, 1 + γ]
        kept = torch.arange(block.shape[1], device=block.device) <= verified[:, None]
        hidden = self.target.forward(block[kept], packed, self._capture)
        logits = self.target.logits(hidden.last)
        computed = self._now()
        verdict = verify(
            logits,
            proposal.tokens,
            proposal.probabilities,
            verified,
            self.sampling,
            batch.seeds,
            batch.rounds,
        )
        accepted, following = verdict.accepted.tolist(), verdict.next_tokens.tolist()
        if self.speculation:
            outcome = Outcome(verdict.accepted, verdict.next_tokens, hidden.features, verified)
            self.speculation.drafter.observe(batch, proposal, outcome)
        end = self._now()
        times = _StepTimes(drafted - begun, scheduled - drafted, computed - scheduled, end - computed, end)
        self._record(states, proposal, lengths, accepted, following, packed.tokens, times)
        self.steps += 1
        self._release([s for s in states if s.finish_reason], finish)

    def _propose(self, batch: DraftBatch) -> Proposal:
        if self.speculation:
            return self.speculation.drafter.propose(batch)
        none = torch.zeros_like(batch.anchors)
        return Proposal(tokens=none.new_empty(len(batch.requests), 0), probabilities=None, drafted=none)

    def _plan(self, batch: DraftBatch, proposal: Proposal) -> torch.Tensor:
        if not self.speculation:
            return proposal.drafted
        load = Load(len(batch.requests), proposal.drafted, batch.lengths + 1)
        return self.speculation.scheduler.plan(proposal.confidences, load)

    def _record(
        self,
        states: Sequence[RequestState],
        proposal: Proposal,
        lengths: list[int],
        accepted: list[int],
        following: list[int],
        step_tokens: int,
        times: _StepTimes,
    ) -> None:
        """Append each request's new tokens and its row of the `rounds` table."""
        drafts = [row[:n] for row, n in zip(proposal.tokens.tolist(), proposal.drafted.tolist(), strict=True)]
        confidences = None if proposal.confidences is None else proposal.confidences.tolist()
        for i, state in enumerate(states):
            context, taken = state.context_length, drafts[i][: accepted[i]]
            stop = next((k for k, token in enumerate(taken) if token in self.stop_tokens), None)
            emitted = [*taken, following[i]] if stop is None else taken[: stop + 1]
            emitted = emitted[: state.request.max_new_tokens - len(state.output)]
            state.output += emitted
            state.last_token_s = times.end
            state.finish_reason = self._finish_reason(state)
            state.rounds.append(
                Round(
                    round=len(state.rounds),
                    step=self.steps,
                    context_length=context,
                    drafted=len(drafts[i]),
                    verified=lengths[i],
                    accepted=accepted[i] if stop is None else stop + 1,
                    ended_by_stop=stop is not None,
                    confidences=confidences[i][: len(drafts[i])] if confidences else None,
                    draft_ids=drafts[i],
                    emitted_ids=emitted,
                    step_requests=len(states),
                    step_tokens=step_tokens,
                    draft_s=times.draft,
                    schedule_s=times.schedule,
                    verify_s=times.verify,
                    sample_s=times.sample,
                    end_s=times.end,
                )
            )

    def _finish_reason(self, state: RequestState) -> str | None:
        if state.output[-1] in self.stop_tokens:
            return "stop"
        return "length" if len(state.output) >= state.request.max_new_tokens else None

    def _release(self, ended: list[RequestState], finish: Callable[[RequestState], None]) -> None:
        if not ended:
            return
        if self.speculation:
            self.speculation.drafter.end(ended)
        self._slots.release(ended)
        for state in ended:
            finish(state)

    def _tensor(self, values: Sequence[int]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.long, device=self.target.device)
