"""The front doors, and the judge of what they give."""
