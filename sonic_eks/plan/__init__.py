"""What a deployment comes to before it exists: capacity, quotas, cost, in sections."""
