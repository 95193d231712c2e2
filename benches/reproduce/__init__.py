"""How many users methods need, by simulation: the figures of the docs, and the constants that the planner ships."""
