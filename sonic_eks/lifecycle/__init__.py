"""Life cycle of what a deployment is made of: order of creation and deletion, updates, limits."""
