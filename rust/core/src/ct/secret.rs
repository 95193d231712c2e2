//! Memory that is wiped.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};
use zeroize::Zeroize;

/// Bytes that are wiped quickly, by whole vectors, where there are many: a [`Secret`] of a vector is wiped byte by byte.
pub struct Bytes(Vec<u8>);

impl Bytes {
    /// So many zeros.
    pub fn zeros(number: usize) -> Self {
        Self(vec![0; number])
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Zeroize for Bytes {
    fn zeroize(&mut self) {
        self.0.fill(0);
        super::needed(&self.0);
    }
}

/// A value that is overwritten when it goes out of scope, and that `Debug` does not show.
///
/// What the compiler copied to registers or the stack meanwhile is not wiped.
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes charge of a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T: Zeroize> Deref for Secret<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> DerefMut for Secret<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}
