"""Which models make room for which: frozen values that answer one question and never look around."""
