"""Why was A evicted for B? Pure policies: a target and what runs in, the models to stop out."""
