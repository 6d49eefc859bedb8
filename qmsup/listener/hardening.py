"""What keeps a browser from making more of our own answers than they are."""

SAFE_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Referrer-Policy", "no-referrer"),
)
"""Of each answer that is not a model's. A page with scripts of its own says its own Content-Security-Policy."""
