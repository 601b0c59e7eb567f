"""Learn by experiment what an image that nobody documents does: over capacity, on SIGTERM."""
