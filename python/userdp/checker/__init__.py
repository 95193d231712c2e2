"""The independent checker of audit reports: the standard library alone, and no code of the auditor (decision 0005)."""
