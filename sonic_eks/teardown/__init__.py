"""Removing a deployment's workload and nodes before its stacks are destroyed."""
