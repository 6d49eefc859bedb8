"""What readings of the memory mean: whose it is, how much of it is ours to use, and when there is too much in use.

| question | module |
| --- | --- |
| what was read? | `sample` |
| whose is it, and is that to be trusted? | `attribution` |
| how much do others use when nothing is the matter? | `floor` |
| what do the dead still have? | `leaving` |
| how much may our models use, and hold? | `ceiling` |
| is it news? | `gauge`, which puts these together; `reading` has what goes in and comes out |
| how often is it looked at? | `cadence` |
| what goes when too much is held? | `watchdog` |
| what does a child say of itself? | `load_log` |
"""
