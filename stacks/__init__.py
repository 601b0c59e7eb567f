"""CloudFormation stacks, one file each: they only wire constructs together."""
