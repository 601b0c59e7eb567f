"""Capacity: what an objective and a traffic shape ask for, and the policy that scales for it."""
