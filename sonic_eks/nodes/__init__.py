"""Nodes as AWS and Kubernetes both see them: pools, taints, and what a node is started with."""
