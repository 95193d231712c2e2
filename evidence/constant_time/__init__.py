"""Machine-checked evidence that the samplers are constant time; see docs/constant-time.md."""
