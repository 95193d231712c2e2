"""Learners that are private at the level of users."""
