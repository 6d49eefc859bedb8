"""What differs between the programs a child may be: added arguments, and what their last words mean."""
