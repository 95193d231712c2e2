//! Leaks for the proof that the harness finds them. Only ever part of a copy of the library that is thrown away.

use std::{hint::black_box, sync::LazyLock};

static ACTIVE: LazyLock<String> = LazyLock::new(|| std::env::var("USERDP_PLANTED_LEAK").unwrap_or_default());

/// Something that can be leaked.
pub(crate) trait Leak {
    /// A branch on each word.
    fn leak(&self);
}

impl Leak for u64 {
    fn leak(&self) {
        if black_box(*self) & 1 == 1 {
            for step in 0..4 {
                black_box(step);
            }
        }
    }
}

impl Leak for i64 {
    fn leak(&self) {
        self.cast_unsigned().leak();
    }
}

impl Leak for u128 {
    fn leak(&self) {
        (*self as u64).leak();
        ((*self >> 64) as u64).leak();
    }
}

impl<T: Leak> Leak for [T] {
    fn leak(&self) {
        self.iter().for_each(Leak::leak);
    }
}

impl<T: Leak, const N: usize> Leak for [T; N] {
    fn leak(&self) {
        self.as_slice().leak();
    }
}

impl<T: Leak + ?Sized> Leak for &T {
    fn leak(&self) {
        (**self).leak();
    }
}

impl<T: Leak + ?Sized> Leak for &mut T {
    fn leak(&self) {
        (**self).leak();
    }
}

/// Leaks the secrets of the kernel that the environment variable names, and nothing in other kernels.
pub(crate) fn leak(kernel: &str, secrets: &[&dyn Leak]) {
    if *ACTIVE == kernel {
        secrets.iter().for_each(|secret| secret.leak());
    }
}
