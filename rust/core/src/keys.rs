//! Keys that are shown where somebody has them: what one user changes, some of whose keys nobody else has.
//!
//! [`Keys`] is about counts and sums by key, of which a user has a number of keys ([sparse histograms]), and [`Rounds`] about
//! weights that a user spreads over keys ([set unions]). In both, keys of one user are hidden with some probability, and are
//! never shown without that user; other keys move. All deltas are upper bounds: powers, levels and sums are rounded against the
//! claim. [`guess`] proposes noise and thresholds in floats, which an account then decides.
//!
//! [sparse histograms]: https://github.com/userdp/userdp/blob/main/docs/proofs/sparse_histogram.md
//! [set unions]: https://github.com/userdp/userdp/blob/main/docs/proofs/set_union.md

mod chords;
mod curve;
pub mod guess;
mod rounds;
mod shares;
mod splits;

pub use curve::gaussian_hockey_stick;
pub use rounds::{Round, RoundArguments, Rounds};
pub use shares::{fine_groups, groups};
pub use splits::{Keys, vanishing};

use crate::exact::{Integer, Rational, dyadic::Dyadic};
use num_traits::{One, Zero};
use std::cmp::Ordering;

fn zero() -> Dyadic {
    Dyadic::integer(Integer::zero())
}

fn one() -> Dyadic {
    Dyadic::integer(Integer::one())
}

/// x / y for y > 0, rounded to a little more than so many bits.
fn quotient(x: &Dyadic, y: &Dyadic, bits: i64, up: bool) -> Dyadic {
    let found = Dyadic::quotient(&x.mantissa, &y.mantissa, bits, up);
    Dyadic { exponent: found.exponent + x.exponent - y.exponent, ..found }
}

/// A fraction, rounded to a little more than so many bits.
fn rounded(x: &Rational, bits: i64, up: bool) -> Dyadic {
    Dyadic::quotient(x.numer(), x.denom(), bits, up)
}

/// 1 - x, exactly.
fn rest(x: &Dyadic) -> Dyadic {
    one().plus(&x.negated())
}

fn larger(x: Dyadic, y: Dyadic) -> Dyadic {
    if x.compare(&y) == Ordering::Less { y } else { x }
}

fn smaller(x: Dyadic, y: Dyadic) -> Dyadic {
    if x.compare(&y) == Ordering::Greater { y } else { x }
}
