//! Vectors of users, rotated.
//!
//! Paper: [LSAKKMS21, Algorithm 2].

use super::{UserVectors, hadamard::Rotation};
use crate::{Error, Result, simd::Kernel};

/// Every user's vector, padded with zeros and rotated.
pub struct Rotated<'a> {
    vectors: &'a dyn UserVectors,
    rotation: &'a Rotation,
    kernel: Kernel,
}

impl<'a> Rotated<'a> {
    /// Of the vectors of all users.
    ///
    /// # Errors
    /// For a rotation that is not of the next power of two.
    pub fn new(vectors: &'a dyn UserVectors, rotation: &'a Rotation) -> Result<Self> {
        let (given, columns) = (rotation.dimension(), vectors.dimension());
        if given != columns.next_power_of_two() {
            return Err(Error::invalid("signs", format!("{given} are given for {columns} columns")));
        }
        Ok(Self { vectors, rotation, kernel: Kernel::detect() })
    }
}

impl UserVectors for Rotated<'_> {
    fn users(&self) -> usize {
        self.vectors.users()
    }

    fn dimension(&self) -> usize {
        self.rotation.dimension()
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        let (vector, padding) = out.split_at_mut(self.vectors.dimension());
        padding.fill(0.0);
        let present = self.vectors.write(user, vector);
        if present {
            self.rotation.apply(self.kernel, out);
        }
        present
    }
}
