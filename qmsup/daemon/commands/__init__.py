"""The verbs that become a process instead of asking one."""
