//! Correlated sampling: draws of similar distributions by the same public randomness, which agree as often as the distributions overlap.
//!
//! Nothing here protects anybody: privacy never rests on these draws, only how often users agree does.
//!
//! Paper: [GKM21, Definition 7].

pub mod darts;
pub mod logarithm;
pub mod race;
