"""Operating-system children: their command, port, start, output, end. Hands only: nothing here decides."""
