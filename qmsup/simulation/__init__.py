"""Traces run through the scheduler's own core in virtual time, to see what a configuration would make of them."""
