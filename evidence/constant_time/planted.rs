//! Leaks for the proof that the harness finds them. Only ever part of a copy of the library that is thrown away.

use std::{hint::black_box, sync::LazyLock};

static AWAKE: LazyLock<String> = LazyLock::new(|| std::env::var("USERDP_PLANTED_LEAK").unwrap_or_default());

/// Something that can be leaked. All of it is inlined: the branch is one of the function that leaks.
pub(crate) trait Leak {
    /// A branch on each word.
    fn leak(&self);
}

impl Leak for u8 {
    #[inline(always)]
    fn leak(&self) {
        u64::from(*self).leak();
    }
}

impl Leak for u64 {
    #[inline(always)]
    fn leak(&self) {
        if black_box(*self) & 1 == 1 {
            for step in 0..4 {
                black_box(step);
            }
        }
    }
}

impl Leak for i64 {
    #[inline(always)]
    fn leak(&self) {
        self.cast_unsigned().leak();
    }
}

impl Leak for u128 {
    #[inline(always)]
    fn leak(&self) {
        (*self as u64).leak();
        ((*self >> 64) as u64).leak();
    }
}

impl<T: Leak> Leak for [T] {
    #[inline(always)]
    fn leak(&self) {
        for secret in self {
            secret.leak();
        }
    }
}

impl<T: Leak, const N: usize> Leak for [T; N] {
    #[inline(always)]
    fn leak(&self) {
        self.as_slice().leak();
    }
}

impl<T: Leak + ?Sized> Leak for &T {
    #[inline(always)]
    fn leak(&self) {
        (**self).leak();
    }
}

impl<T: Leak + ?Sized> Leak for &mut T {
    #[inline(always)]
    fn leak(&self) {
        (**self).leak();
    }
}

/// Leaks a secret of the function that the environment variable names, and nothing in others.
#[inline(always)]
pub(crate) fn leak<T: Leak + ?Sized>(function: &str, secret: &T) {
    if is_awake(function) {
        secret.leak();
    }
}

#[inline(never)]
fn is_awake(function: &str) -> bool {
    *AWAKE == function
}
