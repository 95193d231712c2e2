//! Constant-time primitives: which instructions run and which addresses they touch depends on public values only.
//!
//! Everything here is constant time; what is not carries `_vartime` in its name. Each function says which of its
//! arguments may be secret. The instructions used on secrets are additions, multiplications, shifts, logic, comparisons
//! and conditional moves, whose time does not depend on their operands on the processors this is meant for. Compilers
//! may undo such code: selections go through the inline assembly below, and the compiled result is checked
//! (docs/constant-time.md). Secret arithmetic is written with wrapping operations: a check for overflow is a branch.

// Calls would cost more than what they do, and leave secrets on the stack.
#![allow(clippy::inline_always)]

mod secret;
pub mod wide;

pub use secret::{Bytes, Secret};
pub use zeroize::Zeroize;

/// A number that the compiler knows nothing about, so that it cannot turn arithmetic on it into a branch.
///
/// Secret: `x`.
#[inline(always)]
pub fn barrier(x: u64) -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut hidden = x;
        // SAFETY: the assembly is a comment; it reads and writes one register.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) hidden, options(pure, nomem, nostack, preserves_flags));
        }
        hidden
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        std::hint::black_box(x)
    }
}

/// Something for which the compiler must take these bytes to be read, so that it does write what they were set to.
///
/// Secret: the bytes.
#[inline(always)]
pub fn needed(bytes: &[u8]) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        // SAFETY: the assembly is a comment, that may read memory for all that the compiler knows.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::asm!("/* {0} */", in(reg) bytes.as_ptr(), options(readonly, nostack, preserves_flags));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        std::hint::black_box(bytes);
    }
}

/// The smaller of two numbers. Secret: both.
#[inline(always)]
pub fn min(a: u64, b: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut least = a;
        // SAFETY: a comparison and a conditional move of registers.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::asm!(
                "cmp {0}, {1}",
                "cmova {0}, {1}",
                inout(reg) least,
                in(reg) b,
                options(pure, nomem, nostack),
            );
        }
        least
    }
    #[cfg(target_arch = "aarch64")]
    {
        let least: u64;
        // SAFETY: a comparison and a conditional move of registers.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::asm!(
                "cmp {1}, {2}",
                "csel {0}, {2}, {1}, hi",
                lateout(reg) least,
                in(reg) a,
                in(reg) b,
                options(pure, nomem, nostack),
            );
        }
        least
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        select(less(b, a), b, a)
    }
}

/// The smaller of two signed numbers. Secret: both.
#[inline(always)]
pub fn min_signed(a: i64, b: i64) -> i64 {
    from_ordered(min(to_ordered(a), to_ordered(b)))
}

/// `value` moved into `low..=high`, for low <= high. Secret: all.
#[inline(always)]
pub fn clamp(value: i64, low: i64, high: i64) -> i64 {
    let at_most_high = min_signed(value, high);
    // max(a, b) is the complement of the minimum of the complements.
    !min_signed(!at_most_high, !low)
}

/// 1 when a < b, otherwise 0. Secret: both.
#[inline(always)]
pub fn less(a: u64, b: u64) -> u64 {
    barrier(u64::from(a.overflowing_sub(b).1))
}

/// 1 when a <= b, otherwise 0. Secret: both.
#[inline(always)]
pub fn at_most_wide(a: u128, b: u128) -> u64 {
    // The borrow of a subtraction, for which compilers have a subtract with borrow.
    u64::from(!b.overflowing_sub(a).1)
}

/// 1 when a = b, otherwise 0. Secret: both.
#[inline(always)]
pub fn equal(a: u64, b: u64) -> u64 {
    let difference = a ^ b;
    barrier((difference | difference.wrapping_neg()) >> 63) ^ 1
}

/// All ones for 1 and zero for 0. Secret: `bit`.
#[inline(always)]
pub fn mask(bit: u64) -> u64 {
    barrier(bit).wrapping_neg()
}

/// `yes` for the bit 1 and `no` for 0. Secret: all.
#[inline(always)]
pub fn select(bit: u64, yes: u64, no: u64) -> u64 {
    no ^ ((yes ^ no) & mask(bit))
}

/// floor(a b / 2^64). Secret: both.
#[inline(always)]
pub fn high_product(a: u64, b: u64) -> u64 {
    (u128::from(a).wrapping_mul(u128::from(b)) >> 64) as u64
}

/// floor(a b / 2^128). Secret: both.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
pub fn high_product_wide(a: u128, b: u128) -> u128 {
    let (a_high, a_low) = (a >> 64, u128::from(a as u64));
    let (b_high, b_low) = (b >> 64, u128::from(b as u64));
    // Nothing wraps: the factors are below 2^64 here and the result is below 2^128.
    let product = |x: u128, y: u128| x.wrapping_mul(y);
    let (first, second) = (product(a_low, b_high), product(a_high, b_low));
    let middle = (product(a_low, b_low) >> 64)
        .wrapping_add(u128::from(first as u64))
        .wrapping_add(u128::from(second as u64));
    product(a_high, b_high).wrapping_add(first >> 64).wrapping_add(second >> 64).wrapping_add(middle >> 64)
}

/// Numbers in the order of the signed ones.
#[inline(always)]
fn to_ordered(a: i64) -> u64 {
    a.cast_unsigned() ^ (1 << 63)
}

#[inline(always)]
fn from_ordered(a: u64) -> i64 {
    (a ^ (1 << 63)).cast_signed()
}

/// Defines functions that are compiled once, under the name of a symbol that the built library exports: what is
/// measured and checked for secret-dependent branches and addresses is then what every caller runs.
macro_rules! kernel {
    ($($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)+) => {
        $(
            $(#[$meta])*
            #[inline(never)]
            // SAFETY: no other symbol begins with userdp_.
            #[allow(unsafe_code)]
            #[unsafe(no_mangle)]
            $visibility fn $name($($argument: $type),*) $(-> $result)? $body
        )+
    };
}
pub(crate) use kernel;

/// Defines functions that branch on something drawn, under exported names that begin with `userdp_revealed_`: the list
/// of what a watcher of branches learns. Each one says what that is, why it says nothing about the result, and which
/// arguments are secret otherwise.
macro_rules! revealed {
    ($($function:tt)+) => { $crate::ct::kernel! { $($function)+ } };
}
pub(crate) use revealed;

#[cfg(test)]
mod tests;
