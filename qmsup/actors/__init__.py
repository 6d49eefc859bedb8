"""Thin shells around the core, one thread each. They stamp the time, carry out effects, and decide nothing."""
