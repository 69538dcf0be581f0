"""A measured process: started, asked, stopped in its tracks while others are measured, and always ended."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent  # holds the package this file is in

_READ = 1 << 16
_END_S = (
    5.0  # a process whose questions have ended has this long to put away what it shares between processes
)


class ChildError(Exception):
    """The process failed; the message is its own."""


class Child:
    """Speaks `side_by_side.protocol` with one module run by one interpreter.

    The process leads a group of its own, in which the processes it starts are too, so that all of them stand still
    together. When this process dies, the group loses its link to the session, and the kernel wakes and ends it.
    """

    def __init__(self, python: Path, module: str, environment: Mapping[str, str], log: Path) -> None:
        """environment: variables on top of this process's own. log: what it prints. Raises ChildError."""
        self._log = log
        with log.open("wb") as stderr:
            try:
                self._process = subprocess.Popen(
                    [python, "-P", "-m", module],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env={**os.environ, "PYTHONPATH": str(HERE), "PYTHONUNBUFFERED": "1", **environment},
                    process_group=0,
                )
            except OSError as error:
                raise ChildError(f"{python}: {error.strerror or error}") from error
        self.group = self._process.pid

    def ask(self, timeout_s: float, **question: Any) -> dict[str, Any]:
        """One question and its answer. Raises ChildError when it failed or was silent too long; it is then ended."""
        try:
            return self._answer(timeout_s, question)
        except ChildError:
            self.stop()
            raise

    def _answer(self, timeout_s: float, question: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise ChildError(self._last_words(f"ended with code {self._process.wait()}")) from None
        answer: dict[str, Any] = json.loads(self._line(timeout_s))
        if "error" in answer:
            raise ChildError(self._last_words(answer["error"]))
        return answer

    def pause(self) -> None:
        """No process of the group runs until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def dismiss(self) -> None:
        """Ask the process to end: its questions are over."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self.resume()

    def stop(self) -> None:
        """Dismiss it, and end by force what is left of the group a little later. Twice does no harm."""
        self.dismiss()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.group, number)

    def _line(self, timeout_s: float) -> bytes:
        assert self._process.stdout is not None
        descriptor, line = self._process.stdout.fileno(), b""
        until = time.monotonic() + timeout_s
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise ChildError(self._last_words(f"no answer in {timeout_s:.0f} s"))
            part = os.read(descriptor, _READ)
            if not part:
                raise ChildError(self._last_words(f"ended with code {self._process.wait()}"))
            line += part
        return line

    def _last_words(self, what: str) -> str:
        """`what`, and the cause that the log names: engines often report only that something failed."""
        text = self._log.read_text(encoding="utf-8", errors="replace")
        causes = re.findall(
            r"^(?:\([^)]*\) )?(?:[A-Z]+ [^\]]*\] )?((?:\w+\.)*\w*Error: .+)$", text, re.MULTILINE
        )
        cause = next((cause for cause in causes if cause not in what), None)
        return what if cause is None else f"{what} (first cause in {self._log.name}: {cause})"


class Children:
    """The processes that are up. As a context: they are ended when it is left, however that happens."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._up: list[Child] = []

    def start(self, name: str, python: Path, module: str, environment: Mapping[str, str]) -> Child:
        """Raises ChildError when the interpreter cannot be started."""
        log = self._logs / f"{name.replace(' ', '-')}.log"
        child = Child(python, module, environment, log)
        self._up.append(child)
        return child

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *exception: object) -> None:
        for child in self._up:
            child.dismiss()
        for child in self._up:
            child.stop()
