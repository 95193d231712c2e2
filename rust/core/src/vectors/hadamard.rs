//! The random rotation of one vector by signs and the fast Walsh-Hadamard transform.
//!
//! Paper: [LSAKKMS21, Lemma 2].

use crate::simd::{Kernel, hadamard};

/// A rotation of d numbers into D, the next power of two: zeros are appended, signs are applied, and the
/// Walsh-Hadamard transform over sqrt(D) follows.
#[derive(Debug, Clone)]
pub struct Rotation {
    /// The signs over sqrt(D).
    factors: Vec<f64>,
}

impl Rotation {
    /// From public signs, one for each coordinate with the appended ones.
    ///
    /// # Errors
    /// Unless there are a power of two many, all -1 or 1.
    pub fn new(signs: &[i8]) -> crate::Result<Self> {
        let argument = "signs";
        if !signs.len().is_power_of_two() {
            let message = format!("must be a power of two many; got {}", signs.len());
            return Err(crate::Error::invalid(argument, message));
        }
        if let Some(sign) = signs.iter().find(|sign| sign.abs() != 1) {
            return Err(crate::Error::invalid(argument, format!("{sign} is not a sign; -1 and 1 are")));
        }
        let scale = 1.0 / (signs.len() as f64).sqrt();
        Ok(Self { factors: signs.iter().map(|&sign| f64::from(sign) * scale).collect() })
    }

    /// D.
    pub fn dimension(&self) -> usize {
        self.factors.len()
    }

    /// Rotates a vector of length D.
    pub fn apply(&self, kernel: Kernel, vector: &mut [f64]) {
        hadamard::transform(kernel, vector, &self.factors);
    }
}
