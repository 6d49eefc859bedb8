"""What readings of the memory mean: whose it is, how much of it is ours to use, and when there is too much in use."""
