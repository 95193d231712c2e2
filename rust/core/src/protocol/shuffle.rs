//! Protocols behind a shuffler: everybody sends messages and some more, and only their numbers are seen.
//!
//! Every one of n users sends x + Z copies of one message, Z ~ NB(r / n, p). The numbers add up to NB(r, p) noise.
//!
//! Paper: [GKM21, Theorem 35], [GKM21, Lemma 36], [GKM21, Lemma 37], [GKM21, Lemma 38].

mod distribution;
mod divergence;
mod noise;
mod reports;
mod search;

pub use distribution::NegativeBinomialDistribution;
pub use divergence::{Change, divergence};
pub use noise::{Goal, ShuffleNoise};
pub use reports::{Reports, permute, reports};
