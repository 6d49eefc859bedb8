"""What decides: plain values and a time in, plain values out. No clock, thread, socket, file or log in here."""
