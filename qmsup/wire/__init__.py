"""What bytes between processes mean. PROTOCOL.md is the contract; nothing here opens a socket."""
