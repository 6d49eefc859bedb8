"""Which servers are believed to be who they say, when they are spoken to over TLS."""

import ssl

from qmsup.spec import ANYONE


def context_of(trust: str) -> ssl.SSLContext:
    """How connections to a server are made safe.

    Args:
        trust: as in the spec: "" = its certificate is one that this system trusts; a file of those that count
            instead; ANYONE = no certificate is looked at.

    Raises:
        OSError: the file cannot be read, or holds no certificate.
    """
    if trust == ANYONE:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context = ssl.create_default_context(cafile=trust or None)
    context.set_alpn_protocols(["http/1.1"])
    # A server that asks for it could have us wait for reading while we write.
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def distrust(error: OSError) -> str:
    """What was wrong when a connection was to be made safe, for whoever can do something about it."""
    match error:
        case ssl.SSLCertVerificationError():
            return (
                f"its certificate is not trusted ({error.verify_message.rstrip('.')}): name the file of its "
                "authority as `trust`"
            )
        case ssl.SSLEOFError() | ConnectionResetError():
            return "it closed the connection when TLS began: does it speak https?"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "HTTP_REQUEST"):
            return "it does not speak TLS: write http in place of https"
        case ssl.SSLError():
            return f"TLS failed ({error.reason or error})"
        case _:
            return error.strerror or str(error)
