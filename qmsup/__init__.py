"""qmsup: one GPU box serves many models."""

__version__ = "0.1.0"
