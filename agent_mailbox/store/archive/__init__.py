"""The months that are past: rotation, manifest, what was filed."""
