"""Several machines: which one serves a conversation, and how many requests each takes at once."""
