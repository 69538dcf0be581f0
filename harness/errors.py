"""Errors that the person at the keyboard can mend."""

from __future__ import annotations


class BenchError(Exception):
    """Something outside the program is wrong: a file, a key, a value, a machine.

    The message is a sentence that names the file, the key, the value and the mend. The command line prints it
    without a traceback and exits with code 2; inside a run it marks the cell `failed` with the message as reason.
    """
