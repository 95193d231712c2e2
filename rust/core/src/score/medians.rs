//! The private median's scores.
