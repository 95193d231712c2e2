//! Clipped pairwise sums of any comparison ([GKKMMZ23, Appendix E.1] and [GKKMMZ23, Theorem 41]):
//! `max over b != a of sum_i clip(sum_j psi_ab(x_ij), -tau, tau)`, with psi and tau integers on one public grid.
//!
//! A clipped sum of one user is in -tau..=tau and, where |psi| <= g, in -g m..=g m: replacing a user changes every score
//! by at most 2 min(tau, g m).
//!
//! Paper: [GKKMMZ23, Theorem 37].

use super::user_rows::UserRows;
use crate::{
    Error, Result,
    control::Control,
    simd::{Kernel, dispatch::dispatched},
};
use num_traits::WrappingAdd;
use rayon::prelude::*;

/// Candidates b that are compared with one candidate a at a time.
const LANES: usize = 16;
/// Users between two looks whether the work was canceled.
const USERS_PER_CHECK: usize = 1 << 14;

/// psi as a table: `psi[(a * candidates + b) * points + point]`.
#[derive(Debug, Clone, Copy)]
pub struct PsiTable<'a> {
    /// The entries; those with a = b are not looked at.
    pub psi: &'a [i64],
    /// The number of candidates.
    pub candidates: usize,
    /// The number of points.
    pub points: usize,
}

impl PsiTable<'_> {
    /// The score of every candidate; 0 for a single one. Lower is better.
    ///
    /// # Errors
    /// For an empty table, tau < 1, points that are not in the table, sums that may not fit 64 bits, and when canceled.
    pub fn scores(self, rows: &UserRows, tau: i64, kernel: Kernel, control: &Control) -> Result<Vec<i64>> {
        let Self { psi, candidates, points } = self;
        if candidates == 0
            || points == 0
            || candidates.saturating_mul(candidates).saturating_mul(points) != psi.len()
        {
            return Err(Error::invalid("psi", "a table of candidates, candidates and points is needed"));
        }
        if rows.points().iter().any(|&point| point as usize >= points) {
            return Err(Error::invalid("points", format!("a code is not below {points}")));
        }
        let grid = psi.par_iter().map(|psi| psi.unsigned_abs()).max().unwrap_or(0);
        let largest = grid.saturating_mul(rows.most_rows().into());
        let tau = checked_tau(tau, largest, rows.users())?;
        if candidates == 1 {
            return Ok(vec![0]);
        }
        control.set_total(candidates);
        (0..candidates)
            .into_par_iter()
            .map(|a| {
                let sums = match (i32::try_from(largest), i32::try_from(tau)) {
                    (Ok(_), Ok(tau)) => self.sums(a, rows, control, |table, users, sums| {
                        add_clipped_i32(kernel, table, rows, users, tau, sums);
                    }),
                    _ => self.sums(a, rows, control, |table, users, sums| {
                        add_clipped_i64(kernel, table, rows, users, tau, sums);
                    }),
                }?;
                control.advance(1)?;
                // There are at least two candidates.
                Ok((0..candidates).filter(|&b| b != a).map(|b| sums[b]).max().unwrap_or(0))
            })
            .collect()
    }

    /// The clipped sums of a against all others: `add` adds those of some users to a few.
    fn sums<T: TryFrom<i64> + Copy + Default>(
        self,
        a: usize,
        rows: &UserRows,
        control: &Control,
        add: impl Fn(&[[T; LANES]], std::ops::Range<usize>, &mut [i64; LANES]),
    ) -> Result<Vec<i64>> {
        let (against, points) = (self.candidates * self.points, self.points);
        let psi = &self.psi[a * against..][..against];
        let mut sums = Vec::new();
        let mut table = vec![[T::default(); LANES]; points];
        for psi in psi.chunks(LANES * points) {
            for (lane, psi) in psi.chunks_exact(points).enumerate() {
                for (entry, &psi) in table.iter_mut().zip(psi) {
                    // All entries fit the type: their multiples do.
                    entry[lane] = T::try_from(psi).unwrap_or_default();
                }
            }
            let mut found = [0; LANES];
            for first in (0..rows.users()).step_by(USERS_PER_CHECK) {
                control.check()?;
                add(&table, first..rows.users().min(first + USERS_PER_CHECK), &mut found);
            }
            sums.extend(found);
        }
        Ok(sums)
    }
}

/// tau, or the largest sum of a user if that is less.
pub(super) fn checked_tau(tau: i64, largest: u64, users: usize) -> Result<i64> {
    if tau < 1 {
        return Err(Error::invalid("tau", format!("{tau} is out of range; at least 1 is needed")));
    }
    let tau = tau.unsigned_abs().min(largest);
    let sums = u128::from(tau) * users as u128;
    match (i64::try_from(tau), i64::try_from(sums), i64::try_from(largest)) {
        (Ok(tau), Ok(_), Ok(_)) => Ok(tau),
        _ => Err(Error::too_large(format!(
            "{users} users with clipped sums up to {tau} units of the grid: scores may not fit 64 bits; take a coarser \
             grid"
        ))),
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add_clipped<T: WrappingAdd + Copy + Default + Ord + Into<i64>>(
    table: &[[T; LANES]],
    rows: &UserRows,
    users: std::ops::Range<usize>,
    (low, high): (T, T),
    sums: &mut [i64; LANES],
) {
    for user in users {
        let mut own = [T::default(); LANES];
        for &point in &rows.points()[rows.places(user)] {
            for (own, psi) in own.iter_mut().zip(&table[point as usize]) {
                *own = own.wrapping_add(psi);
            }
        }
        for (sum, own) in sums.iter_mut().zip(own) {
            *sum = sum.wrapping_add(own.max(low).min(high).into());
        }
    }
}

dispatched! {
    fn add_clipped_i32(
        table: &[[i32; LANES]], rows: &UserRows, users: std::ops::Range<usize>, tau: i32, sums: &mut [i64; LANES]
    ) = add_clipped(table, rows, users, (-tau, tau), sums),
        add_clipped(table, rows, users, (-tau, tau), sums),
        add_clipped(table, rows, users, (-tau, tau), sums);
}
dispatched! {
    fn add_clipped_i64(
        table: &[[i64; LANES]], rows: &UserRows, users: std::ops::Range<usize>, tau: i64, sums: &mut [i64; LANES]
    ) = add_clipped(table, rows, users, (-tau, tau), sums),
        add_clipped(table, rows, users, (-tau, tau), sums),
        add_clipped(table, rows, users, (-tau, tau), sums);
}
