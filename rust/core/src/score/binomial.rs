//! Tails of binomial distributions, and where two of them are told apart best.
