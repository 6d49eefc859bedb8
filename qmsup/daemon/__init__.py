"""Assembly: turns a configuration into running processes and a process into running actors."""
