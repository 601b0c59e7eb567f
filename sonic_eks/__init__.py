"""Cartesia Sonic text-to-speech on Amazon EKS, as AWS CDK and cdk8s code."""

__version__ = "0.1.0"
