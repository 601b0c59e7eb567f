"""Copies of upstream images and charts in the account's own registry, byte for byte.

The package needs boto3, python-dxf and PyYAML only, and nothing else of this project but
`sonic_eks.errors` and `sonic_eks.upstream`: a build runs it from a folder of its own.
"""
