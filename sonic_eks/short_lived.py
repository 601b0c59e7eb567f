"""Importing this module suits a process to a life of seconds: it never collects garbage.

A synthesis allocates until it ends, so what a collection would free is worth less than the search
for it: a fifth of the time that the libraries take to import.
"""

from __future__ import annotations

import gc

gc.disable()
