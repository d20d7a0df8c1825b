"""What every package uses: arrays, checks, resources, progress, display, files, compiled loops."""
