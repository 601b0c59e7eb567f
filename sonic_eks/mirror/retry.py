"""Trying again: exponential backoff with jitter."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sonic_eks.mirror.errors import MirrorError, TransientError

T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how patiently to try again.

    The n-th wait is drawn between 0 and min(cap, base x 2^n): full jitter keeps parallel
    transfers from coming back together. A server's Retry-After is the least that is waited.

    Attributes
    ----------
    tries : int
        Tries in all; 7 of them span about a minute on average.
    base_seconds, cap_seconds : float
        First and largest bound of a wait.
    sleep, draw : callable
        Replaced by tests.
    heard : callable
        Told in one line what failed and when it is tried again.
    """

    tries: int = 7
    base_seconds: float = 1.0
    cap_seconds: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[float, float], float] = random.uniform
    heard: Callable[[str], None] = lambda _: None

    def call(self, what: str, action: Callable[[], T]) -> T:
        """Run `action`, again after each `TransientError` until the tries are used up.

        Parameters
        ----------
        what : str
            Subject of the final error.
        action : callable
            What to do.

        Raises
        ------
        MirrorError
            When the last try failed too.
        """
        attempt = 0
        while True:
            try:
                return action()
            except TransientError as error:
                attempt += 1
                self.wait(what, error, attempt)

    def wait(self, what: str, error: TransientError, failures: int) -> None:
        """Wait after the `failures`-th failure in a row, or give up.

        Raises
        ------
        MirrorError
            When no try is left.
        """
        allowed = min(self.tries, error.tries or self.tries)
        if failures >= allowed:
            times = "once" if failures == 1 else f"{failures} times"
            raise MirrorError(f"{what}: {error} (tried {times})") from None
        bound = min(self.cap_seconds, self.base_seconds * 2 ** (failures - 1))
        seconds = max(self.draw(0, bound), error.retry_after_seconds or 0)
        self.heard(f"{what}: {error}; try {failures + 1} of {allowed} in {seconds:.0f} s")
        self.sleep(seconds)
