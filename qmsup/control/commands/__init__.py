"""One file per verb: its help, its options, what it asks, and how it shows the answer."""
