"""Which sockets listen on a port, by the number that `/proc/PID/fd` has for them too.

The kernel is asked over netlink for this one port: 50 µs. `/proc/net/tcp` tells the same, but walks the table of all
connections for it, which takes 5 ms of CPU even where there are none; it is read where netlink is not to be had.
"""

import socket
import struct

_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_SOCK_DIAG_BY_FAMILY = 20
_ERROR, _DONE = 2, 3
_NETLINK_SOCK_DIAG = 4
_LISTEN = 10
_HEADER = struct.Struct("=IHHII")
"""Length, type, flags, sequence, port id."""
_REQUEST = struct.Struct("=BBBxI2s2s16s16sI8s")
"""Family, protocol, extensions, states; then the socket: ports (source first), addresses, interface, cookie."""
_ANSWER = struct.Struct("=4x2s2s16s16s4x8s4x4x4x4xI")
"""Source port, destination port, addresses, cookie, inode."""
_ANSWER_BYTES = 64 * 1024
_PATIENCE = struct.pack("@ll", 0, 500_000)
"""Seconds and µs. The kernel answers in the call itself; this is against the day it does not. (A socket with a time-out
of Python's is polled before each call.)"""
_ANY = bytes(16)
_LOCAL_V4 = frozenset((_ANY, bytes((127, 0, 0, 1)) + bytes(12)))
_LOCAL_V6 = frozenset(
    (_ANY, bytes(15) + b"\1", bytes(10) + b"\xff\xff\x7f\0\0\1")  # ::, ::1, ::ffff:127.0.0.1
)
_HERE = {socket.AF_INET: _LOCAL_V4, socket.AF_INET6: _LOCAL_V6}
_LISTENING_IN_PROC = "0A"
_UNCONNECTED_IN_PROC = (_LISTENING_IN_PROC, "07")
_HERE_IN_PROC = frozenset(
    (
        "00000000",  # 0.0.0.0
        "0100007F",  # 127.0.0.1
        "0" * 32,  # ::
        "00000000000000000000000001000000",  # ::1
        "0000000000000000FFFF00000100007F",  # ::ffff:127.0.0.1
    )
)


def listening_inodes(port: int) -> set[str]:
    """The inodes of what listens on a local port, on loopback or on every address."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _PATIENCE)
            return {inode for family in _HERE for inode in _asked(kernel, port, family)}
    except OSError:
        return inodes_in_proc(port)


def _asked(kernel: socket.socket, port: int, family: socket.AddressFamily) -> set[str]:
    wire_port = struct.pack("!H", port)
    request = _REQUEST.pack(
        family, socket.IPPROTO_TCP, 0, 1 << _LISTEN, wire_port, b"\0\0", _ANY, _ANY, 0, b"\xff" * 8
    )
    header = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _DUMP, 1, 0)
    found: set[str] = set()
    kernel.send(header + request)
    while True:
        data = kernel.recv(_ANSWER_BYTES)
        start = 0
        while start < len(data):
            length, kind, _, _, _ = _HEADER.unpack_from(data, start)
            if kind == _DONE:
                return found
            if kind == _ERROR or length < _HEADER.size:
                raise OSError("the kernel does not tell over netlink who listens")
            source, _, address, _, _, inode = _ANSWER.unpack_from(data, start + _HEADER.size)
            if source == wire_port and address in _HERE[family]:
                found.add(str(inode))
            start += (length + 3) & ~3


def inodes_in_proc(port: int) -> set[str]:
    """The same from `/proc/net/tcp`."""
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:  # noqa: PTH123 - read line by line, and only the beginning
                next(lines)
                for line in lines:
                    fields = line.split(maxsplit=10)
                    if fields[3] not in _UNCONNECTED_IN_PROC:
                        break  # the kernel lists what listens first; the rest may be thousands of connections
                    address, _, hex_port = fields[1].rpartition(":")
                    is_here = fields[3] == _LISTENING_IN_PROC and address in _HERE_IN_PROC
                    if is_here and int(hex_port, 16) == port:
                        found.add(fields[9])
        except OSError:  # no IPv6 here
            continue
    return found
