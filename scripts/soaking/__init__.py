"""The long search behind `scripts/soak`: histories for what decides, faults for a whole box."""
