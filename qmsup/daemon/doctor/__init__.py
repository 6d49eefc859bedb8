"""What is wrong on this box, and what to do: one module for each kind of thing that is looked at.

Each has a `look` that yields findings. Nothing is changed, ended or made by looking.
"""
