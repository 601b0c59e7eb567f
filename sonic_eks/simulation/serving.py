"""One queue in front of the workers: first come, first served, the least loaded worker first.

Every worker has the same number of slots. What finds none free waits, and is refused after its
patience. As each generation goes to the least loaded worker, loads are taken to be even: they
differ by one at most. When each generation starts does not depend on that; the load that it meets
does, and how many a worker takes with it that stops taking more.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REFUSED = np.inf
"""Wait of a generation that was refused."""


class Serving:
    """What is in progress, what waits, and what became of every generation.

    Parameters
    ----------
    times : ndarray, shape (n,)
        Arrivals in seconds, rising.
    durations : ndarray, shape (n,)
        Seconds that each keeps its slot.
    slots : int
        Generations that a worker has at once.
    workers : int
        Workers at the beginning.
    patience_seconds : float
        Longest wait.

    Attributes
    ----------
    waits : ndarray, shape (n,)
        Seconds until each started, `REFUSED` for those that did not.
    loads : ndarray, shape (n,)
        Load of its worker as it started, itself included; 0 where it was refused.
    workers : int
        Workers that take generations.
    """

    def __init__(
        self, times: Floats, durations: Floats, *, slots: int, workers: int, patience_seconds: float
    ) -> None:
        self.waits = np.zeros(len(times))
        self.loads = np.zeros(len(times), dtype=np.int32)
        self.workers = workers
        self._times, self._durations = times, durations
        self._slots = slots
        self._patience = patience_seconds
        self._next = 0
        self._ends: Floats = np.empty(0)
        self._queue: deque[int] = deque()

    @property
    def in_progress(self) -> int:
        """Generations on workers that take more."""
        return len(self._ends)

    @property
    def waiting(self) -> int:
        """Generations in the queue."""
        return len(self._queue)

    def advance(self, until: float) -> None:
        """Let everything up to `until` happen."""
        first = self._next
        last = int(np.searchsorted(self._times, until, side="right"))
        self._next = last
        if self._queue or not self._start_at_once(first, last, until):
            self._start_in_turn(first, last, until)

    def _start_at_once(self, first: int, last: int, until: float) -> bool:
        """Start arrivals as they come, if there is a slot for each; return whether there was."""
        times = self._times[first:last]
        ends = np.concatenate((self._ends, times + self._durations[first:last]))
        ends.sort()
        # An end at the instant of an arrival makes room for it.
        over = np.searchsorted(ends, times, side="right")
        busy = len(self._ends) + np.arange(1, len(times) + 1) - over
        if len(busy) and busy.max() > self.workers * self._slots:
            return False
        # The least loaded of even workers, and the newcomer.
        self.loads[first:last] = (busy - 1) // max(self.workers, 1) + 1
        self._ends = ends[np.searchsorted(ends, until, side="right") :]
        return True

    def _start_in_turn(self, first: int, last: int, until: float) -> None:
        ends = self._ends.tolist()
        heapify(ends)
        times, durations = self._times[first:last].tolist(), self._durations[first:last].tolist()
        for index, (time, duration) in enumerate(zip(times, durations, strict=True), first):
            self._end(ends, time)
            if len(ends) < self.workers * self._slots:
                self.loads[index] = len(ends) // self.workers + 1
                heappush(ends, time + duration)
            else:
                self._queue.append(index)
        self._end(ends, until)
        self._give_up(until)
        self._ends = np.sort(np.array(ends, dtype=np.float64))

    def _end(self, ends: list[float], until: float) -> None:
        """Let what ends up to `until` end, and the longest waiting take its place."""
        while ends and ends[0] <= until:
            end = ends[0]
            self._give_up(end)
            if self._queue:
                index = self._queue.popleft()
                self._start(index, end, self._slots)
                heapreplace(ends, end + float(self._durations[index]))
            else:
                heappop(ends)

    def _give_up(self, now: float) -> None:
        """Refuse what has waited for as long as it has patience."""
        while self._queue and self._times[self._queue[0]] + self._patience <= now:
            self.waits[self._queue.popleft()] = REFUSED

    def _start(self, index: int, now: float, load: int) -> None:
        self.waits[index] = now - self._times[index]
        self.loads[index] = load

    def join(self, now: float, workers: int) -> None:
        """Add workers; what waits starts on them.

        Parameters
        ----------
        now : float
            When; `advance` has been there, and nowhere later.
        workers : int
            How many.
        """
        self.workers += workers
        started: list[float] = []
        while self._queue and len(started) < workers * self._slots:
            index = self._queue.popleft()
            # Whatever waits tells that all others are full, so that the new ones fill in turn.
            self._start(index, now, len(started) // workers + 1)
            started.append(now + float(self._durations[index]))
        self._ends = np.sort(np.concatenate((self._ends, started)))

    def leave(self, now: float) -> Floats:
        """Take a worker away; return when each generation ends that it keeps.

        Parameters
        ----------
        now : float
            As in `join`.
        """
        busy = len(self._ends)
        # The least that one of even workers has: what is left fits into the others.
        kept = busy // self.workers
        self.workers -= 1
        # Even in what they have yet to do, too.
        picked = (np.arange(kept) * 2 + 1) * busy // (2 * kept) if kept else np.empty(0, dtype=int)
        ends: Floats = self._ends[picked]
        self._ends = np.delete(self._ends, picked)
        return ends
