"""The parts of DelStab: calibrations, what is kept, the relation, and the engines."""
