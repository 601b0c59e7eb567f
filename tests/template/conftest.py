"""Helpers of the template tests."""

from tests.synth import cdk_context

__all__ = ["cdk_context"]
