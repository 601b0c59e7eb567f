"""Kubernetes manifests as cdk8s charts, one concern a file."""
