"""Reads the memory of GPUs and of the machine. All of it may be absent, which is normal, and nothing is made up."""
