//! How far each point is from a median of all users.
//!
//! For u in low..=high let L(u) be the number of users with more than s samples in low..=u-1, and R(u) of those with more
//! than s in u+1..=high. The score is K(u) = max(L(u), R(u)). A user adds 0 or 1 to L and to R, so that replacing one user
//! changes K by at most 1.
//!
//! With a user's (s+1)-th smallest sample a and (s+1)-th largest b in the range, L(u) counts the a < u and R(u) the b > u:
//! the score changes at points a + 1 and b only.
//!
//! Source: Li, Wang, Ye (2024), the private median of Lemma 5.1.
//!
//! Paper: [LWY24, Lemma 5.1].

use super::thresholds::{Groups, ThresholdSweep, settle_empty_groups};
use crate::{Error, Result, control::Control, memory::room};

impl ThresholdSweep {
    /// The scores of all points in low..=high, in 2 n + 1 groups for n users, whatever their rows: the first begin at
    /// `low`. An empty group has the score of the next one.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless low <= high <= N, [`Error::Canceled`].
    pub fn median_groups(&self, low: u64, high: u64, s: u32, control: &Control) -> Result<Groups> {
        if low > high || high > self.domain_size() {
            let message = format!("{low}..={high} must not be empty, nor end after {}", self.domain_size());
            return Err(Error::invalid("low, high", message));
        }
        let (ascending, descending) = rayon::join(
            || self.order_statistics(self.visits(low, high), s, control),
            || self.order_statistics(self.visits(low, high).rev(), s, control),
        );
        let (ascending, mut descending) = (ascending?, descending?);
        descending.reverse();

        // One step of L where there is room for it, one of R, and padding at the beginning.
        let rises = ascending.iter().take_while(|&&a| a < high).map(|&a| a + 1);
        let mut rises = rises.peekable();
        let mut falls = descending.iter().copied().peekable();
        let slots = 2 * self.users() + 1;
        let padding = slots - rises.clone().count() - descending.len();
        let (mut left, mut right) = (0, descending.iter().map(|_| 1_i64).sum());
        let (mut starts, mut scores) = (room("n_users", slots)?, room("n_users", slots)?);
        starts.resize(padding, low);
        scores.resize(padding, i64::max(left, right));
        while let Some(&start) = rises.peek().into_iter().chain(falls.peek()).min() {
            if rises.next_if_eq(&start).is_some() {
                left += 1;
            } else {
                falls.next();
                right -= 1;
            }
            starts.push(start);
            scores.push(i64::max(left, right));
        }
        settle_empty_groups(&starts, &mut scores);
        Ok((starts, scores))
    }

    /// The point of each user's (s+1)-th visit, in order of these visits.
    fn order_statistics(
        &self,
        visits: impl Iterator<Item = (u64, usize)>,
        s: u32,
        control: &Control,
    ) -> Result<Vec<u64>> {
        let (mut seen, mut found) = (room("n_users", self.users())?, room("n_users", self.users())?);
        seen.resize(self.users(), 0);
        for (index, (point, user)) in visits.enumerate() {
            if index % super::order::CHECK_EVERY == 0 {
                control.check()?;
            }
            if seen[user] == s {
                found.push(point);
            }
            seen[user] += 1;
        }
        Ok(found)
    }
}
