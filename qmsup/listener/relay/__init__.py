"""Carries bytes between clients and children: sans-IO framing and machine, and one epoll loop as their hand."""
