"""Puts an air-gapped license where the license proxy looks for it, once."""
