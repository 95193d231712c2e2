//! Exact numbers: rationals, exact sums of floats, directed rounding, enclosures of e^x and ln x, privacy levels.

pub mod binomial;
pub mod dyadic;
pub mod exp;
pub mod exp128;
pub mod gcd;
pub mod interval;
pub mod level;
pub mod ln;
pub mod rounding;
pub mod sum;

pub use interval::Interval;
pub use level::Level;
pub use num_bigint::{BigInt as Integer, BigUint as Natural};
pub use num_rational::BigRational as Rational;
pub use sum::ExactSum;
