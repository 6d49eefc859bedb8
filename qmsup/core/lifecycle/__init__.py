"""The life of a child, as values: what a failed start costs the next one."""
