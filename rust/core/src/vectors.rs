//! One vector for each user, made from that user's rows alone, and sums of integers over users.
//!
//! A user's vector is floating-point, but what is summed are integers whose range or norm is enforced in integers, so
//! that replacing one user changes a sum by at most a known number, whatever floating-point arithmetic does. For that,
//! a user's integers must be a function of the user's rows and of public numbers only. They are, to the last bit: each
//! user is computed alone, by operations in an order that depends on public sizes only, whichever other users there
//! are, whichever thread does it and whatever vector instructions it has (no operations are fused).
//!
//! Vectors are never stored: every sum streams over the users, in parallel. None of this is constant-time.

pub mod bins;
pub mod clip;
pub mod excess;
pub mod gradients;
pub mod hadamard;
pub mod joint;
pub mod means;
pub mod moments;
pub mod norm;
pub mod products;
pub mod rotated;
pub mod rows;
pub mod whitened;
pub mod winsorize;
pub mod within;

use crate::{Error, Result, control::Control};
use rayon::prelude::*;
use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A vector for each user.
pub trait UserVectors: Sync {
    /// The number of users, with and without rows: public.
    fn users(&self) -> usize;

    /// The length of vectors.
    fn dimension(&self) -> usize;

    /// Writes the vector of a user below [`UserVectors::users`] to `out`, of length [`UserVectors::dimension`], finite
    /// numbers of at most [`LARGEST`]; false for a user without rows, who has no vector.
    ///
    /// The vector must be a function of the user's rows and of public numbers only, to the last bit.
    fn write(&self, user: usize, out: &mut [f64]) -> bool;
}

/// Some of the users, in some order.
pub struct Subset<'a> {
    vectors: &'a dyn UserVectors,
    users: &'a [u32],
}

impl<'a> Subset<'a> {
    /// The listed users, each once: a public choice.
    ///
    /// # Errors
    /// For a user who is not there, and for a user who is listed twice.
    pub fn new(vectors: &'a dyn UserVectors, users: &'a [u32]) -> Result<Self> {
        let mut listed = vec![false; vectors.users()];
        for &user in users {
            match listed.get_mut(user as usize) {
                Some(listed) if !*listed => *listed = true,
                Some(_) => return Err(Error::invalid("users", format!("{user} is listed twice"))),
                None => {
                    return Err(Error::invalid("users", format!("{user} is not below {}", vectors.users())));
                }
            }
        }
        Ok(Self { vectors, users })
    }
}

impl UserVectors for Subset<'_> {
    fn users(&self) -> usize {
        self.users.len()
    }

    fn dimension(&self) -> usize {
        self.vectors.dimension()
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        self.vectors.write(self.users[user] as usize, out)
    }
}

/// The same vectors, and the origin for users without rows: nobody is without a vector.
pub struct Filled<'a>(pub &'a dyn UserVectors);

impl UserVectors for Filled<'_> {
    fn users(&self) -> usize {
        self.0.users()
    }

    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        if !self.0.write(user, out) {
            out.fill(0.0);
        }
        true
    }
}

/// 2^400: the most that a public length may be, so that squares and sums stay in range.
pub const LARGEST: f64 = f64::from_bits((1023 + 400) << 52);
/// 2^-400: the least that a public length may be.
pub const SMALLEST: f64 = f64::from_bits((1023 - 400) << 52);
/// The most steps: integers of users fit 32 bits, and their sums 64.
pub const MOST_STEPS: u32 = i32::MAX.unsigned_abs();

/// Numbers written between two looks at the control.
const CHECK_EVERY: usize = 1 << 16;

/// A total over all users, which must not depend on their order: `add` is given every user's vector, or none.
pub(crate) fn fold<A: Send>(
    vectors: &dyn UserVectors,
    control: &Control,
    empty: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, Option<&mut [f64]>) + Sync,
    merge: impl Fn(&mut A, A) + Sync,
) -> Result<A> {
    let (users, dimension) = (vectors.users(), vectors.dimension());
    // Sums of fewer than 2^31 users with at most 2^31 steps each are exact in 64 bits.
    if i32::try_from(users).is_err() {
        return Err(Error::too_large(format!("{users} users are too many; at most 2^31 - 1 are taken")));
    }
    control.set_total(users);
    let block = (CHECK_EVERY / dimension.max(1)).clamp(1, CHECK_EVERY);
    let next = AtomicUsize::new(0);
    let work = |_| {
        let mut total = empty();
        let mut memory = vec![0.0; dimension + ALIGNMENT];
        let vector = aligned(&mut memory, dimension);
        loop {
            let first = next.fetch_add(block, Ordering::Relaxed);
            if first >= users {
                return Ok(total);
            }
            let last = users.min(first + block);
            for user in first..last {
                let present = vectors.write(user, vector);
                add(&mut total, present.then_some(&mut *vector));
            }
            control.advance(last - first)?;
        }
    };
    let workers = rayon::current_num_threads().min(users.div_ceil(block)).max(1);
    let totals = (0..workers).into_par_iter().with_max_len(1).map(work).collect::<Result<Vec<A>>>()?;
    let mut totals = totals.into_iter();
    let mut total = totals.next().unwrap_or_else(empty);
    totals.for_each(|other| merge(&mut total, other));
    Ok(total)
}

/// How many numbers of 8 bytes fit a cache line.
const ALIGNMENT: usize = 8;

/// So many of the numbers, from the start of a cache line on where that is possible: vector loads from elsewhere take
/// twice as long. There must be [`ALIGNMENT`] more.
fn aligned(memory: &mut [f64], length: usize) -> &mut [f64] {
    let first = memory.as_ptr().align_offset(ALIGNMENT * size_of::<f64>()).min(ALIGNMENT);
    &mut memory[first..first + length]
}

/// Adds to sums, which are known not to overflow.
pub(crate) fn merge_sums(sums: &mut [i64], others: &[i64]) {
    sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
}

/// Refuses a public length out of range.
pub(crate) fn check_length(argument: &'static str, length: f64) -> Result<f64> {
    if (SMALLEST..=LARGEST).contains(&length) {
        Ok(length)
    } else {
        Err(Error::invalid(argument, format!("{length} is out of range; from 2^-400 to 2^400 is accepted")))
    }
}

/// Refuses a public point of another dimension, or out of range.
pub(crate) fn check_point(argument: &'static str, point: &[f64], dimension: usize) -> Result<()> {
    const RANGE: RangeInclusive<f64> = -LARGEST..=LARGEST;
    if point.len() != dimension {
        return Err(Error::invalid(
            argument,
            format!("{} numbers are given; {dimension} are needed", point.len()),
        ));
    }
    match point.iter().find(|number| !RANGE.contains(number)) {
        Some(number) => Err(Error::invalid(
            argument,
            format!("{number} is out of range; from -2^400 to 2^400 is accepted"),
        )),
        None => Ok(()),
    }
}

/// The inverse of a public grid, which must be a power of two: multiplying by it is exact.
pub(crate) fn inverse_grid(grid: f64) -> Result<f64> {
    let mantissa = check_length("grid", grid)?.to_bits() & ((1 << 52) - 1);
    if mantissa == 0 {
        Ok(1.0 / grid)
    } else {
        Err(Error::invalid("grid", format!("{grid} is not a power of two")))
    }
}
