"""Scaling policies, tried on a trace of demand before a GPU is paid for."""
