"""Evidence that the tests notice wrong code: small faults are planted in it, and tests must fail (README.md)."""
