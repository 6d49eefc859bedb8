"""The benchmark behind `scripts/bench`: qmsup beside a child asked directly, llama-server's router and nginx."""
