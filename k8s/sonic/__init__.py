"""Sonic itself: API, workers and license proxy."""
