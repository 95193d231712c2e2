//! Mistakes of many hypotheses on every user's examples, 64 hypotheses to a word.
//!
//! A user with k examples, of which a hypothesis gets w wrong, has the scaled count `ceil(w m / k)` in 0..=m, whatever
//! k <= m is: short users count by rate. It is a function of this user's examples alone, so that the number of users
//! above a count changes by at most 1 when one user is replaced.

use super::{
    predictions::{BITS, Block, Predictions, WORDS},
    user_rows::UserRows,
};
use crate::{
    Error, Result,
    control::Control,
    memory::room,
    simd::{Kernel, dispatch::dispatched},
};
use rayon::prelude::*;
use std::ops::Range;

/// Users of one task.
const USERS_PER_TASK: usize = 2048;
/// Users are added up in bit planes of this many digits.
const DIGITS: usize = 8;
/// The most entries of a table of hypotheses and counts.
const LARGEST_TABLE: usize = 1 << 24;

/// The disagreements of hypotheses with labels.
#[derive(Debug, Clone, Copy)]
pub struct Mistakes<'a> {
    predictions: &'a Predictions,
    rows: &'a UserRows,
    /// As [`UserRows::ordered`] gives them.
    labels: &'a [u8],
    kernel: Kernel,
}

impl<'a> Mistakes<'a> {
    /// Of all hypotheses; the labels are in the order of [`UserRows::ordered`].
    ///
    /// # Errors
    /// For points without predictions and lists of different lengths.
    pub fn new(
        predictions: &'a Predictions,
        rows: &'a UserRows,
        labels: &'a [u8],
        kernel: Kernel,
    ) -> Result<Self> {
        if labels.len() != rows.points().len() {
            return Err(Error::invalid("labels", "as many are needed as there are rows"));
        }
        if rows.points().iter().any(|&point| point as usize >= predictions.points()) {
            return Err(Error::invalid("points", format!("a code is not below {}", predictions.points())));
        }
        Ok(Self { predictions, rows, labels, kernel })
    }

    /// Every user's count of mistakes of every hypothesis, scaled or plain, `counts[hypothesis * users + user]`.
    ///
    /// # Errors
    /// When m does not fit the type, and when canceled.
    pub fn counts<T: TryFrom<u32> + Copy + Default + Send + Sync>(
        &self,
        scaled: bool,
        control: &Control,
    ) -> Result<Vec<T>> {
        let (users, hypotheses) = (self.rows.users(), self.predictions.hypotheses());
        if T::try_from(self.rows.most_rows()).is_err() {
            return Err(Error::invalid("m", "does not fit the type of the counts"));
        }
        let entries = users.saturating_mul(hypotheses);
        let mut counts = room("n_users", entries)?;
        counts.resize(entries, T::default());
        if counts.is_empty() {
            return Ok(counts);
        }
        // A task has a part of the columns of some rows.
        let mut tasks: Vec<Vec<&mut [T]>> = Vec::new();
        let chunks = users.div_ceil(USERS_PER_TASK);
        for rows in counts.chunks_mut(BITS * users) {
            let first = tasks.len();
            tasks.resize_with(first + chunks, Vec::new);
            for row in rows.chunks_mut(users) {
                for (task, part) in tasks[first..].iter_mut().zip(row.chunks_mut(USERS_PER_TASK)) {
                    task.push(part);
                }
            }
        }
        tasks.into_par_iter().enumerate().try_for_each(|(task, mut rows)| {
            let first = task % chunks * USERS_PER_TASK;
            self.for_each_user(
                task / chunks,
                first..users.min(first + USERS_PER_TASK),
                |user, wrong, counts| {
                    for (row, &wrong) in rows.iter_mut().zip(wrong) {
                        let count = if scaled { counts[wrong as usize] } else { wrong };
                        // Counts are at most m, which fits.
                        row[user - first] = T::try_from(count).unwrap_or_default();
                    }
                },
            );
            control.check()
        })?;
        Ok(counts)
    }

    /// For every hypothesis the number of users whose scaled count is above t.
    ///
    /// # Errors
    /// When canceled.
    pub fn above(&self, t: u32, control: &Control) -> Result<Vec<i64>> {
        self.sums(control, BITS, |block, users| {
            let mut sums = vec![0; BITS];
            sums_above(self.kernel, self, block, users, t, &mut sums);
            sums
        })
    }

    /// For every t in 0..m and every hypothesis the number of users whose scaled count is above t, `[t, hypothesis]`.
    ///
    /// # Errors
    /// For too large a table, and when canceled.
    pub fn above_all(&self, control: &Control) -> Result<Vec<i64>> {
        let (m, hypotheses) = (self.rows.most_rows() as usize, self.predictions.hypotheses());
        if m.checked_mul(self.predictions.blocks_per_point() * BITS).is_none_or(|size| size > LARGEST_TABLE) {
            return Err(Error::too_large(format!(
                "a table of {m} thresholds and {hypotheses} hypotheses; at most {LARGEST_TABLE} entries are made: \
                 ask for the thresholds one by one"
            )));
        }
        // The number of users with each count first, hypothesis by hypothesis.
        let width = m + 1;
        let users_with = self.sums(control, BITS * width, |block, users| {
            let mut sums = vec![0; BITS * width];
            self.for_each_user(block, users, |_, wrong, scaled| {
                for (sums, &wrong) in sums.chunks_exact_mut(width).zip(wrong) {
                    sums[scaled[wrong as usize] as usize] += 1;
                }
            });
            sums
        })?;
        let mut above = vec![0; m * hypotheses];
        for (hypothesis, users_with) in users_with.chunks_exact(width).enumerate() {
            let mut sum = 0;
            for t in (0..m).rev() {
                sum += users_with[t + 1];
                above[t * hypotheses + hypothesis] = sum;
            }
        }
        Ok(above)
    }

    /// For every t in 0..m the least number of users above t that a hypothesis has.
    ///
    /// # Errors
    /// As [`Mistakes::above_all`].
    pub fn least_above(&self, control: &Control) -> Result<Vec<i64>> {
        let above = self.above_all(control)?;
        Ok(above
            .chunks_exact(self.predictions.hypotheses())
            .map(|above| above.iter().copied().min().unwrap_or(0))
            .collect())
    }

    /// Adds up what tasks find for all users, `size` numbers for each block of hypotheses, without the padding.
    fn sums(
        &self,
        control: &Control,
        size: usize,
        found: impl Fn(usize, Range<usize>) -> Vec<i64> + Sync,
    ) -> Result<Vec<i64>> {
        let users = self.rows.users();
        let chunks = users.div_ceil(USERS_PER_TASK);
        let blocks: Vec<Vec<i64>> = (0..self.predictions.blocks_per_point())
            .into_par_iter()
            .map(|block| {
                let parts = (0..chunks).into_par_iter().map(|chunk| {
                    let first = chunk * USERS_PER_TASK;
                    let part = found(block, first..users.min(first + USERS_PER_TASK));
                    control.check()?;
                    Ok(part)
                });
                parts.try_reduce_with(|mut left, right| {
                    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
                    Ok(left)
                })
            })
            .map(|sums| sums.unwrap_or_else(|| Ok(vec![0; size])))
            .collect::<Result<_>>()?;
        let mut sums = blocks.concat();
        sums.truncate(size / BITS * self.predictions.hypotheses());
        Ok(sums)
    }

    /// Calls `visit(user, mistakes of a block's hypotheses, scaled count of every number of mistakes)`.
    fn for_each_user(
        &self,
        block: usize,
        users: Range<usize>,
        mut visit: impl FnMut(usize, &[u32; BITS], &[u32]),
    ) {
        let m = u64::from(self.rows.most_rows());
        let mut planes = vec![[0; WORDS]; (self.rows.most_rows().ilog2() + 1) as usize];
        let (mut wrong, mut scaled) = ([0; BITS], Vec::new());
        for user in users {
            let kept = self.rows.places(user).len() as u64;
            scaled.clear();
            // At most m, which is a u32; a user without rows has no mistakes.
            #[allow(clippy::cast_possible_truncation)]
            scaled.extend((0..=kept).map(|wrong| (wrong * m).div_ceil(kept.max(1)) as u32));
            wrong_counts(self.kernel, self, block, user, &mut planes, &mut wrong);
            visit(user, &wrong, &scaled);
        }
    }

    /// One bit for every hypothesis of a block and every row of a user: is it wrong there?
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn wrong(&self, block: usize, user: usize) -> impl Iterator<Item = Block> {
        let (places, predictions) = (self.rows.places(user), self.predictions);
        self.rows.points()[places.clone()].iter().zip(&self.labels[places]).map(move |(&point, &label)| {
            let flip = 0u64.wrapping_sub(label.into());
            predictions.block(point, block).map(|word| word ^ flip)
        })
    }
}

/// Adds a bit to each of the numbers whose digits are in the planes.
#[inline(always)]
#[allow(clippy::inline_always)]
fn add(planes: &mut [Block], mut carry: Block) {
    for plane in planes {
        for (plane, carry) in plane.iter_mut().zip(&mut carry) {
            (*plane, *carry) = (*plane ^ *carry, *plane & *carry);
        }
    }
}

/// Adds the numbers whose digits are in the planes to `sums`, and leaves zeros.
#[inline(always)]
#[allow(clippy::inline_always)]
fn flush(planes: &mut [Block], sums: &mut [i64]) {
    for (digit, plane) in planes.iter_mut().enumerate() {
        for (&word, sums) in plane.iter().zip(sums.as_chunks_mut::<64>().0) {
            for (bit, sum) in sums.iter_mut().enumerate() {
                *sum += ((word >> bit & 1) << digit).cast_signed();
            }
        }
        *plane = [0; WORDS];
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn wrong_counts_body(
    mistakes: &Mistakes<'_>,
    block: usize,
    user: usize,
    planes: &mut [Block],
    counts: &mut [u32; BITS],
) {
    planes.fill([0; WORDS]);
    for wrong in mistakes.wrong(block, user) {
        add(planes, wrong);
    }
    counts.fill(0);
    for (digit, plane) in planes.iter().enumerate() {
        for (&word, counts) in plane.iter().zip(counts.as_chunks_mut::<64>().0) {
            for (bit, count) in counts.iter_mut().enumerate() {
                *count |= u32::from(word >> bit & 1 == 1) << digit;
            }
        }
    }
}

dispatched! {
    /// How often each hypothesis of a block is wrong on a user's rows.
    fn wrong_counts(mistakes: &Mistakes<'_>, block: usize, user: usize, planes: &mut [Block], counts: &mut [u32; BITS])
        = wrong_counts_body(mistakes, block, user, planes, counts),
          wrong_counts_body(mistakes, block, user, planes, counts),
          wrong_counts_body(mistakes, block, user, planes, counts);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn sums_above_body(mistakes: &Mistakes<'_>, block: usize, users: Range<usize>, t: u32, sums: &mut [i64]) {
    let m = u64::from(mistakes.rows.most_rows());
    let mut planes = vec![[0; WORDS]; (mistakes.rows.most_rows().ilog2() + 1) as usize];
    let mut totals = [[0; WORDS]; DIGITS];
    for (index, user) in users.enumerate() {
        // ceil(w m / k) > t means w m > t k, and w > floor(t k / m).
        let limit = u64::from(t) * mistakes.rows.places(user).len() as u64 / m;
        let mut above = [0; WORDS];
        if limit == 0 {
            for wrong in mistakes.wrong(block, user) {
                above.iter_mut().zip(wrong).for_each(|(above, wrong)| *above |= wrong);
            }
        } else if limit < m {
            planes.fill([0; WORDS]);
            for wrong in mistakes.wrong(block, user) {
                add(&mut planes, wrong);
            }
            let mut equal = [u64::MAX; WORDS];
            for (digit, plane) in planes.iter().enumerate().rev() {
                let of_limit = 0u64.wrapping_sub(limit >> digit & 1);
                for ((above, equal), plane) in above.iter_mut().zip(&mut equal).zip(plane) {
                    *above |= *equal & plane & !of_limit;
                    *equal &= !(plane ^ of_limit);
                }
            }
        }
        add(&mut totals, above);
        if index % ((1 << DIGITS) - 1) == (1 << DIGITS) - 2 {
            flush(&mut totals, sums);
        }
    }
    flush(&mut totals, sums);
}

dispatched! {
    /// Adds for each hypothesis of a block the number of users above t.
    fn sums_above(mistakes: &Mistakes<'_>, block: usize, users: Range<usize>, t: u32, sums: &mut [i64])
        = sums_above_body(mistakes, block, users, t, sums),
          sums_above_body(mistakes, block, users, t, sums),
          sums_above_body(mistakes, block, users, t, sums);
}
