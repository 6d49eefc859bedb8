"""HTTP outwards, control side: is a child ready, what does it say of itself."""
