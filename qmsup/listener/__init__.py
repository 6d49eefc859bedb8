"""HTTP inwards: a WSGI app that decides, and a gunicorn worker class whose relay engine carries."""
