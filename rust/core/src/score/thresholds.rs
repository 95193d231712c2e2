//! How many users each threshold fails, for all thresholds at once.
//!
//! A row is a point in 1, ..., N with a label 0 or 1. The threshold u in 0, ..., N predicts 1 at the points above u and
//! 0 at the others. Of a user's k <= m rows let w be predicted wrongly; the user is then charged ceil(w m / k) of m
//! mistakes, and none without rows. The score K(u; t) is the number of users charged more than t. A user adds 0 or 1,
//! whatever the rows of the others are, so that replacing one user changes K(u; t) by at most 1, and with it every
//! minimum over thresholds u.
//!
//! All thresholds between two neighboring points have one score: going through the points in order, each row changes
//! the mistakes of one user by one.
//!
//! Paper: [LWY24, Algorithm 1], [LWY24, Theorem 5.2].

use super::order::{CHECK_EVERY, Record, sorted};
use crate::{
    Error, Result,
    control::Control,
    memory::{limited, room, zeros},
};

/// Scores of consecutive ranges: group j begins at `starts[j]`, in non-decreasing order, and ends before the next
/// group begins. Groups with the start of the next one are empty.
pub type Groups = (Vec<u64>, Vec<i64>);

/// The largest m, for its memory, and about as many changes of K( . ; t) as [`ThresholdSweep::minimal_errors`] makes.
const MOST_COUNTS: u32 = 1 << 26;
const MOST_CHANGES: u64 = 1 << 38;

/// The rows of all users by point, ready to be gone through.
#[derive(Debug)]
pub struct ThresholdSweep {
    /// Keys are points, values 2 user + label.
    rows: Vec<Record>,
    users: Vec<User>,
    m: u32,
    domain_size: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct User {
    rows: u32,
    /// Under the threshold that has been reached; at first u = 0.
    mistakes: u32,
}

impl User {
    /// ceil(mistakes m / rows), at most m.
    #[allow(clippy::cast_possible_truncation)]
    fn charge(self, m: u32) -> usize {
        if self.rows == m || self.mistakes == 0 {
            return self.mistakes as usize;
        }
        (u64::from(self.mistakes) * u64::from(m)).div_ceil(u64::from(self.rows)) as usize
    }
}

/// The user and the label of a row.
fn user_and_label(row: &Record) -> (usize, bool) {
    ((row.value >> 1) as usize, row.value & 1 == 1)
}

impl ThresholdSweep {
    /// Sorts the rows: row j belongs to user `users[j]` in 0, ..., `n_users` - 1. Users may have no rows.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for arrays of different lengths, a point outside 1..=`domain_size`, a label that is
    /// neither 0 nor 1, a user that is not below `n_users` or has more than `m` rows, m = 0, m or `n_users` of 2^31 and
    /// more; [`Error::TooLarge`] for 2^32 rows and more; [`Error::Canceled`].
    pub fn new(
        points: &[u64],
        labels: &[u8],
        users: &[u32],
        n_users: usize,
        m: u32,
        domain_size: u64,
        control: &Control,
    ) -> Result<Self> {
        if labels.len() != points.len() || users.len() != points.len() {
            let message =
                format!("{} points need as many; got {} and {}", points.len(), labels.len(), users.len());
            return Err(Error::invalid("labels, users", message));
        }
        if !(1..1 << 31).contains(&m) {
            return Err(Error::invalid("m", format!("is {m}; it must be at least 1 and below 2^31")));
        }
        if n_users >= 1 << 31 {
            return Err(Error::invalid("n_users", format!("is {n_users}; it must be below 2^31")));
        }
        // Messages give no rows: those are private.
        if points.iter().any(|point| !(1..=domain_size).contains(point)) {
            return Err(Error::invalid("points", format!("must all be in 1..={domain_size}")));
        }
        let mut table: Vec<User> = zeros("n_users", n_users, "number the users without gaps")?;
        for (index, (&label, &user)) in labels.iter().zip(users).enumerate() {
            if index % CHECK_EVERY == 0 {
                control.check()?;
            }
            let Some(user) = table.get_mut(user as usize) else {
                return Err(Error::invalid("users", format!("must all be below n_users, {n_users}")));
            };
            if label > 1 {
                return Err(Error::invalid("labels", "must all be 0 or 1"));
            }
            if user.rows == m {
                return Err(Error::invalid("users", format!("must each have at most m = {m} rows")));
            }
            user.rows += 1;
            user.mistakes += u32::from(label == 0);
        }
        let value = |row: usize| users[row] << 1 | u32::from(labels[row]);
        let rows = sorted(points.len(), |row| points[row], value, control)?;
        Ok(Self { rows, users: table, m, domain_size })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The points and users of the rows in low..=high, by point.
    pub(super) fn visits(&self, low: u64, high: u64) -> impl DoubleEndedIterator<Item = (u64, usize)> {
        let first = self.rows.partition_point(|row| row.key < low);
        let end = self.rows.partition_point(|row| row.key <= high);
        self.rows[first..end].iter().map(|row| (row.key, user_and_label(row).0))
    }

    /// The number of users.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// N: thresholds are 0, ..., N.
    pub fn domain_size(&self) -> u64 {
        self.domain_size
    }

    /// The least K(u; t) over all thresholds u, for t = 0, ..., m - 1. Each changes by at most 1 when a user is replaced.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for m > 2^26, or more than 2^38 for m times the number of users; [`Error::Canceled`].
    pub fn minimal_errors(&self, control: &Control) -> Result<Vec<i64>> {
        // A row changes the charge of its user, with k rows, by at most ceil(m / k): all k of them by less than m + k.
        if self.m > MOST_COUNTS || u64::from(self.m) * self.users.len() as u64 > MOST_CHANGES {
            return Err(Error::too_large(format!(
                "the least errors of {} users of up to m = {} rows take too long; m may be 2^26 and m times the number \
                 of users 2^38; use a smaller m",
                self.users.len(),
                self.m
            )));
        }
        let m = self.m as usize;
        let mut counts = self.errors_at_zero();
        let mut least = counts.clone();
        let mut users = self.users.clone();
        // Where counts have fallen since the minimum was last taken.
        let mut fallen = Vec::new();
        let mut work = 0;
        for rows in self.rows.chunk_by(|a, b| a.key == b.key) {
            for row in rows {
                let (user, label) = user_and_label(row);
                let user = &mut users[user];
                let before = user.charge(self.m);
                if label {
                    user.mistakes += 1;
                    let after = user.charge(self.m);
                    counts[before..after].iter_mut().for_each(|count| *count += 1);
                    work += after - before;
                } else {
                    user.mistakes -= 1;
                    let after = user.charge(self.m);
                    counts[after..before].iter_mut().for_each(|count| *count -= 1);
                    work += before - after;
                    fallen.push(after..before);
                    if fallen.len() > m {
                        fallen.clear();
                        fallen.push(0..m);
                    }
                }
            }
            // Only now, after all rows of this point, do the counts belong to a threshold.
            for range in fallen.drain(..) {
                work += range.len();
                for (least, &count) in least[range.clone()].iter_mut().zip(&counts[range]) {
                    *least = count.min(*least);
                }
            }
            work += rows.len();
            if work > CHECK_EVERY {
                control.check()?;
                work = 0;
            }
        }
        Ok(least)
    }

    /// K(0; t) for t = 0, ..., m - 1.
    fn errors_at_zero(&self) -> Vec<i64> {
        let mut counts = vec![0; self.m as usize + 1];
        for user in &self.users {
            counts[user.charge(self.m)] += 1;
        }
        // So far users by charge; those charged more than t follow from the end.
        let mut above = 0;
        for count in counts.iter_mut().rev() {
            (*count, above) = (above, above + *count);
        }
        counts.pop();
        counts
    }

    /// The scores K(u; t) of all thresholds u in 0, ..., N, in as many groups as there are rows, and one more: the first
    /// begins at 0, the others at the points in order, and an empty group has the score of the next one.
    ///
    /// Empty groups at 0 make up for what is missing to `slots`, so that a public number of them says nothing about the
    /// number of rows; a smaller one is not heeded.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for t >= m, [`Error::Canceled`].
    pub fn groups(&self, t: u32, slots: usize, control: &Control) -> Result<Groups> {
        if t >= self.m {
            return Err(Error::invalid("t", format!("is {t}; it must be below m = {}", self.m)));
        }
        let padding = slots.saturating_sub(self.rows.len() + 1);
        let starts = || {
            let mut starts = self.slots(padding)?;
            starts.resize(padding + 1, 0);
            starts.extend(self.rows.iter().map(|row| row.key));
            Ok(starts)
        };
        let (starts, scores) = rayon::join(starts, || self.scores(t, padding, control));
        let (starts, mut scores): (Vec<u64>, Vec<i64>) = (starts?, scores?);
        settle_empty_groups(&starts, &mut scores);
        Ok((starts, scores))
    }

    /// Room for the groups of all rows, one more, and so many empty ones.
    fn slots<T>(&self, padding: usize) -> Result<Vec<T>> {
        limited("slots", padding.saturating_add(self.rows.len() + 1), "take fewer slots, or search instead")
    }

    /// K( . ; t) at 0, `padding` times more than once, and after each row.
    #[allow(clippy::cast_possible_truncation)]
    fn scores(&self, t: u32, padding: usize, control: &Control) -> Result<Vec<i64>> {
        // ceil(w m / k) > t exactly when w > floor(t k / m): how far each user's mistakes w are above that.
        let mut excess: Vec<i32> = room("n_users", self.users.len())?;
        for user in &self.users {
            let most = u64::from(t) * u64::from(user.rows) / u64::from(self.m);
            // All are below 2^31.
            excess.push(user.mistakes.cast_signed() - (most as u32).cast_signed());
        }
        let mut score = excess.iter().map(|&excess| i64::from(excess > 0)).sum();
        let mut scores = self.slots(padding)?;
        scores.resize(padding + 1, score);
        for rows in self.rows.chunks(CHECK_EVERY) {
            control.check()?;
            for row in rows {
                let (user, label) = user_and_label(row);
                let excess = &mut excess[user];
                let before = *excess > 0;
                *excess += if label { 1 } else { -1 };
                score += i64::from(*excess > 0) - i64::from(before);
                scores.push(score);
            }
        }
        Ok(scores)
    }
}

/// Gives each empty group the score of the group that begins where it does, so that no half-counted score remains.
pub(super) fn settle_empty_groups(starts: &[u64], scores: &mut [i64]) {
    for slot in (1..starts.len()).rev() {
        if starts[slot - 1] == starts[slot] {
            scores[slot - 1] = scores[slot];
        }
    }
}

/// The least score of the groups that meet low..=high.
///
/// # Errors
/// [`Error::InvalidArgument`] for arrays of different lengths, and for a range that is empty or begins before the
/// first group.
pub fn range_minimum(starts: &[u64], scores: &[i64], low: u64, high: u64) -> Result<i64> {
    if starts.len() != scores.len() {
        let message = format!("has {} entries where starts has {}", scores.len(), starts.len());
        return Err(Error::invalid("scores", message));
    }
    if low > high || starts.first().is_none_or(|&first| low < first) {
        return Err(Error::invalid("low", "the range must not be empty, nor begin before the first group"));
    }
    let first = starts.partition_point(|&start| start <= low) - 1;
    let end = starts.partition_point(|&start| start <= high);
    let groups = (first..end).filter(|&slot| starts.get(slot + 1) != Some(&starts[slot]));
    // The last group that begins at or before `high` is not empty.
    Ok(groups.map(|slot| scores[slot]).min().unwrap_or(scores[first]))
}
