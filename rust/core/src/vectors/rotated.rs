//! Vectors of users, rotated or multiplied by a public matrix.
//!
//! Paper: [LSAKKMS21, Algorithm 2].

use super::{LARGEST, UserVectors, check_point, gradients::dot, hadamard::Rotation};
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

/// Every user's vector times a public matrix.
pub struct Mapped<'a> {
    vectors: &'a dyn UserVectors,
    matrix: &'a [f64],
    kernel: Kernel,
}

impl<'a> Mapped<'a> {
    /// By a square matrix, row after row.
    ///
    /// # Errors
    /// For a matrix of another size, or with entries out of range.
    pub fn new(vectors: &'a dyn UserVectors, matrix: &'a [f64]) -> Result<Self> {
        check_point("matrix", matrix, vectors.dimension().pow(2))?;
        Ok(Self { vectors, matrix, kernel: Kernel::detect() })
    }
}

impl UserVectors for Mapped<'_> {
    fn users(&self) -> usize {
        self.vectors.users()
    }

    fn dimension(&self) -> usize {
        self.vectors.dimension()
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        let mut vector = vec![0.0; out.len()];
        let present = self.vectors.write(user, &mut vector);
        for (y, row) in out.iter_mut().zip(self.matrix.chunks_exact(vector.len())) {
            // Of numbers up to 2^400 nothing overflows.
            *y = dot(self.kernel, row, &vector).clamp(-LARGEST, LARGEST);
        }
        present
    }
}
