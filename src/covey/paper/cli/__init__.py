"""The commands `covey reproduce`, `covey autoencoder` and `covey diagnose`."""
