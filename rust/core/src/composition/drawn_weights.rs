//! Integer weights for tests, the same in every run.

use num_bigint::BigUint;

/// Weights of a linear congruential generator.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    pub(super) fn weights(&mut self, outcomes: u64, most: u64) -> Vec<BigUint> {
        let mut weights: Vec<BigUint> = (0..outcomes).map(|_| BigUint::from(self.next(most))).collect();
        let place = self.next(outcomes) as usize;
        weights[place] += 1_u32;
        weights
    }
}
