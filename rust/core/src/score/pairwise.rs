//! Clipped pairwise sums ([GKKMMZ23, Appendix E.1]): `max over b != a of sum_i clip(c_a[i] - c_b[i], -tau, tau)`.
//!
//! Paper: [GKKMMZ23, Theorem 40].

use crate::{
    Error, Result,
    control::Control,
    simd::{
        Kernel,
        clamps::{ALIGNMENT, Clamped, ROWS, Rows, WIDEST},
    },
};
use rayon::prelude::*;

/// The most candidates in a group; the bounds of one group and the numbers of another stay in the second cache.
const LARGEST_GROUP: usize = 128;
/// Pairs of groups for each thread, about.
const TASKS_PER_THREAD: usize = 4;

/// An integer type of counts, shifted so that it fills a number type of the kernels.
pub trait Count: Copy + Send + Sync {
    /// What the kernels work with.
    type Number: Clamped;
    /// The count, up to a constant.
    fn number(self) -> Self::Number;
    /// The numbers `tau` below and above, or the ends of the type.
    fn bounds(number: Self::Number, tau: u32) -> (Self::Number, Self::Number);
}

macro_rules! count {
    ($type:ty, $number:ty, $tau:ty, $convert:expr, $below:ident, $above:ident) => {
        impl Count for $type {
            type Number = $number;
            fn number(self) -> $number {
                $convert(self)
            }
            fn bounds(number: $number, tau: u32) -> ($number, $number) {
                let tau = <$tau>::try_from(tau).unwrap_or(<$tau>::MAX);
                (number.$below(tau), number.$above(tau))
            }
        }
    };
}
count!(u8, u8, u8, |count| count, saturating_sub, saturating_add);
count!(i8, u8, u8, |count: i8| count.cast_unsigned() ^ 0x80, saturating_sub, saturating_add);
count!(i16, i16, u16, |count| count, saturating_sub_unsigned, saturating_add_unsigned);
count!(
    u16,
    i16,
    u16,
    |count: u16| (count ^ 0x8000).cast_signed(),
    saturating_sub_unsigned,
    saturating_add_unsigned
);
count!(i32, i64, u64, i64::from, saturating_sub_unsigned, saturating_add_unsigned);
count!(u32, i64, u64, i64::from, saturating_sub_unsigned, saturating_add_unsigned);

/// The score of every candidate from `counts[a * users + i]`; 0 for a single candidate. Lower is better.
///
/// When every user's counts are in 0..=m, one user changes each score by at most 2 min(tau, m).
///
/// # Errors
/// For no candidates, no tau, or counts that are not a matrix of `users` columns; and when canceled.
pub fn clipped_pairwise_scores<T: Count>(
    counts: &[T],
    users: usize,
    tau: u64,
    control: &Control,
) -> Result<Vec<i64>> {
    scores_with(Kernel::detect(), counts, users, tau, control)
}

/// [`clipped_pairwise_scores`] with a chosen kernel.
///
/// # Errors
/// As there.
pub fn scores_with<T: Count>(
    kernel: Kernel,
    counts: &[T],
    users: usize,
    tau: u64,
    control: &Control,
) -> Result<Vec<i64>> {
    if counts.is_empty() || !counts.len().is_multiple_of(users) {
        return Err(Error::invalid("counts", "a matrix of at least one candidate and one user is needed"));
    }
    if tau == 0 {
        return Err(Error::invalid("tau", "0 is out of range; at least 1 is needed"));
    }
    if users >= 1 << 31 && size_of::<T>() > 2 {
        return Err(Error::too_large(format!("{users} users: sums of 32-bit counts are for less than 2^31")));
    }
    let candidates = counts.len() / users;
    // Scores are a maximum over the others: a single candidate has none.
    if candidates == 1 {
        return Ok(vec![0]);
    }
    let total = |row: &[T]| row.iter().map(|count| count.number().into()).sum();
    let totals = counts.par_chunks_exact(users).map(total).collect();
    // No two counts of 32 bits differ by more than the largest number of 32 bits.
    let tau = u32::try_from(tau).unwrap_or(u32::MAX);
    let pairs = Pairs { kernel, counts, users, totals, tau };
    let parts = (2 * TASKS_PER_THREAD * rayon::current_num_threads()).isqrt();
    let group = candidates.div_ceil(parts).next_multiple_of(ROWS).min(LARGEST_GROUP);
    let groups = candidates.div_ceil(group);
    control.set_total(groups * (groups + 1) / 2);
    let nothing = || vec![i64::MIN; candidates];
    (0..groups * groups)
        .into_par_iter()
        .map(|task| (task / groups, task % groups))
        .filter(|(a, b)| a <= b)
        .try_fold(
            || (Scratch::default(), nothing()),
            |(mut scratch, mut scores), (a, b)| {
                let of = |number| number * group..candidates.min((number + 1) * group);
                let maxima = pairs.maxima(of(a), of(b), &mut scratch, control)?;
                raise(&mut scores[of(a)], &maxima.0);
                raise(&mut scores[of(b)], &maxima.1);
                control.advance(1)?;
                Ok((scratch, scores))
            },
        )
        .map(|found| found.map(|(_, scores)| scores))
        .try_reduce(nothing, |mut left, right| {
            raise(&mut left, &right);
            Ok(left)
        })
}

/// Raises scores to what was found to be larger.
fn raise(scores: &mut [i64], found: &[i64]) {
    scores.iter_mut().zip(found).for_each(|(score, &found)| *score = found.max(*score));
}

/// Bounds of some rows and numbers of others, for some users.
#[derive(Default)]
struct Scratch<T> {
    lower: Vec<T>,
    upper: Vec<T>,
    numbers: Vec<T>,
}

/// All pairs of the rows of a matrix.
struct Pairs<'a, T> {
    kernel: Kernel,
    counts: &'a [T],
    users: usize,
    totals: Vec<i64>,
    tau: u32,
}

type Candidates = std::ops::Range<usize>;

impl<T: Count> Pairs<'_, T> {
    fn row(&self, candidate: usize) -> &[T] {
        &self.counts[candidate * self.users..][..self.users]
    }

    /// The largest sums of two groups of candidates against each other: of the left ones, and of the right ones.
    fn maxima(
        &self,
        left: Candidates,
        right: Candidates,
        scratch: &mut Scratch<T::Number>,
        control: &Control,
    ) -> Result<(Vec<i64>, Vec<i64>)> {
        let columns = right.len().next_multiple_of(ROWS);
        let clamped = self.clamped(&left, &right, scratch, control)?;
        let mut maxima = (vec![i64::MIN; left.len()], vec![i64::MIN; right.len()]);
        for ((a, own_maximum), clamped) in left.zip(&mut maxima.0).zip(clamped.chunks_exact(columns)) {
            let own = self.totals[a];
            for ((b, other_maximum), &clamped) in right.clone().zip(&mut maxima.1).zip(clamped) {
                if a < b {
                    // The sum of b against a is the negative of that of a against b.
                    *own_maximum = (own - clamped).max(*own_maximum);
                    *other_maximum = (clamped - own).max(*other_maximum);
                }
            }
        }
        Ok(maxima)
    }

    /// The sums of the right rows clamped to the neighborhoods of the left ones, where a < b, with padded columns.
    fn clamped(
        &self,
        left: &Candidates,
        right: &Candidates,
        Scratch { lower, upper, numbers }: &mut Scratch<T::Number>,
        control: &Control,
    ) -> Result<Vec<i64>> {
        let size = size_of::<T::Number>();
        let (rows, columns) = (left.len().next_multiple_of(ROWS), right.len().next_multiple_of(ROWS));
        let mut sums = vec![0; rows * columns];
        for first in (0..self.users).step_by(WIDEST / size) {
            control.check()?;
            let users = first..self.users.min(first + WIDEST / size);
            let width = users.len().next_multiple_of(ALIGNMENT / size);
            for (list, length) in [(&mut *lower, rows), (&mut *upper, rows), (&mut *numbers, columns)] {
                list.resize(length * width, T::Number::default());
            }
            let bounds = lower.chunks_exact_mut(width).zip(upper.chunks_exact_mut(width));
            for (a, (lower, upper)) in left.clone().zip(bounds) {
                for ((count, lower), upper) in
                    self.row(a)[users.clone()].iter().zip(&mut *lower).zip(&mut *upper)
                {
                    (*lower, *upper) = T::bounds(count.number(), self.tau);
                }
                lower[users.len()..].fill(T::Number::default());
                upper[users.len()..].fill(T::Number::default());
            }
            for (b, numbers) in right.clone().zip(numbers.chunks_exact_mut(width)) {
                for (count, number) in self.row(b)[users.clone()].iter().zip(&mut *numbers) {
                    *number = count.number();
                }
                numbers[users.len()..].fill(T::Number::default());
            }
            let rows = Rows { lower, upper, numbers, width, triangle: left == right };
            Clamped::add_clamped(self.kernel, rows, &mut sums);
        }
        Ok(sums)
    }
}
