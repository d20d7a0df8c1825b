"""What happens on and around a support: rounding to it, polishing on it."""
