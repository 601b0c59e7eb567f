"""Sizing: the arithmetic of capacity, on plain numbers."""
