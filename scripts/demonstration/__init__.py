"""The demo behind `scripts/demo`: real models, real ports, a minute of anybody's time."""
