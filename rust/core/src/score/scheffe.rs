//! Scheffé scores ([GKKMMZ23, Theorem 41]): the comparison `psi_ab(z) = P_a(W) - [z in W]` of two distributions, where W
//! is the set of symbols that a gives more mass than b.
//!
//! Masses are integers over one public total, the unit, and so are tau and the scores. A user's sum depends on the
//! number of this user's symbols and on how many of them are in W: users are counted by these two, once for every set W.

use super::psi::checked_tau;
use crate::{
    Error, Result,
    control::Control,
    simd::{Kernel, dispatch::dispatched},
};
use rayon::prelude::*;
use std::cmp::Reverse;

/// The most bytes of all ordered pairs of candidates.
const LARGEST: usize = 1 << 31;
/// Users are counted in this many tables, so that equal neighbors do not wait for each other.
const TABLES: usize = 4;

/// Distributions over finitely many symbols, and how often each user has each symbol.
#[derive(Debug, Clone, Copy)]
pub struct Scheffe<'a> {
    /// `masses[candidate * symbols + symbol]`, not negative, with the same total for every candidate.
    pub masses: &'a [i64],
    /// `histograms[user * symbols + symbol]`
    pub histograms: &'a [u32],
    /// The number of symbols.
    pub symbols: usize,
}

/// A set of symbols.
type Set<const WORDS: usize> = [u64; WORDS];

/// An ordered pair of candidates, by the set of symbols to which the first gives more mass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair<const WORDS: usize> {
    set: Set<WORDS>,
    a: u32,
    b: u32,
}

impl Scheffe<'_> {
    /// The score of every candidate, in units of the grid; 0 for a single one. Lower is better.
    ///
    /// One user changes each score by at most 2 min(tau, m unit), where no user has more than m symbols.
    ///
    /// # Errors
    /// For no candidates, masses that are negative or have different totals, more than 1024 symbols, tau < 1, work or
    /// sums that are too large, and when canceled.
    pub fn scores(self, tau: i64, kernel: Kernel, control: &Control) -> Result<Vec<i64>> {
        match self.symbols {
            1..=64 => self.scores_of::<1>(tau, kernel, control),
            65..=256 => self.scores_of::<4>(tau, kernel, control),
            257..=1024 => self.scores_of::<16>(tau, kernel, control),
            other => Err(Error::invalid("masses", format!("{other} symbols; 1 to 1024 are accepted"))),
        }
    }

    fn scores_of<const WORDS: usize>(self, tau: i64, kernel: Kernel, control: &Control) -> Result<Vec<i64>> {
        let unit = self.unit()?;
        let candidates = self.masses.len() / self.symbols;
        let users = Users::new(self)?;
        let largest = users.largest_size().saturating_mul(unit.unsigned_abs());
        let tau = checked_tau(tau, largest, users.start.len())?;
        if candidates == 1 {
            return Ok(vec![0]);
        }
        let most = (LARGEST / size_of::<Pair<WORDS>>()).isqrt();
        if candidates > most {
            return Err(Error::too_large(format!(
                "{candidates} candidates: at most {most} are compared with each other; take a coarser cover"
            )));
        }
        let mut pairs: Vec<Pair<WORDS>> =
            (0..candidates).into_par_iter().flat_map_iter(|a| self.pairs_of(a)).collect();
        control.check()?;
        pairs.par_sort_unstable();
        control.check()?;
        let groups: Vec<&[Pair<WORDS>]> = pairs.chunk_by(|left, right| left.set == right.set).collect();
        control.set_total(groups.len());
        let nothing = || (Counted::new(&users), vec![i64::MIN; candidates]);
        groups
            .into_par_iter()
            .try_fold(nothing, |(mut counted, mut scores), pairs| {
                let table = counted.of(&pairs[0].set, kernel);
                for pair in pairs {
                    let inside = self.mass(pair);
                    let sum: i64 = table
                        .iter()
                        .map(|&(size, count, users)| users * (size * inside - count * unit).clamp(-tau, tau))
                        .sum();
                    let score = &mut scores[pair.a as usize];
                    *score = sum.max(*score);
                }
                control.advance(1)?;
                Ok((counted, scores))
            })
            .map(|found| found.map(|(_, scores)| scores))
            .try_reduce(
                || vec![i64::MIN; candidates],
                |mut left, right| {
                    left.iter_mut().zip(right).for_each(|(left, right)| *left = right.max(*left));
                    Ok(left)
                },
            )
    }

    /// The common total of the masses of a candidate.
    fn unit(&self) -> Result<i64> {
        let invalid = |message: &str| Error::invalid("masses", message);
        if self.masses.is_empty() || !self.masses.len().is_multiple_of(self.symbols) {
            return Err(invalid("a matrix of at least one candidate and one symbol is needed"));
        }
        if self.masses.iter().any(|&mass| mass < 0) {
            return Err(invalid("negative masses are not accepted"));
        }
        let mut totals = self
            .masses
            .chunks_exact(self.symbols)
            .map(|masses| masses.iter().try_fold(0i64, |total, &mass| total.checked_add(mass)));
        match totals.next() {
            Some(Some(unit)) if unit > 0 && totals.all(|total| total == Some(unit)) => Ok(unit),
            _ => Err(invalid("the same positive total is needed for every candidate")),
        }
    }

    fn row(&self, candidate: usize) -> &[i64] {
        &self.masses[candidate * self.symbols..][..self.symbols]
    }

    fn pairs_of<const WORDS: usize>(&self, a: usize) -> impl Iterator<Item = Pair<WORDS>> {
        let candidates = self.masses.len() / self.symbols;
        (0..candidates).filter(move |&b| b != a).map(move |b| {
            let mut set = [0; WORDS];
            for (symbol, (own, other)) in self.row(a).iter().zip(self.row(b)).enumerate() {
                set[symbol / 64] |= u64::from(own > other) << (symbol % 64);
            }
            // There are fewer candidates than 2^32: pairs are limited.
            #[allow(clippy::cast_possible_truncation)]
            Pair { set, a: a as u32, b: b as u32 }
        })
    }

    /// The mass that the first candidate gives to the set.
    fn mass<const WORDS: usize>(&self, pair: &Pair<WORDS>) -> i64 {
        let masses = self.row(pair.a as usize);
        symbols_of(pair.set).map(|symbol| masses[symbol]).sum()
    }
}

/// The members of a set.
fn symbols_of<const WORDS: usize>(set: Set<WORDS>) -> impl Iterator<Item = usize> {
    set.into_iter().enumerate().flat_map(|(word, mut bits)| {
        std::iter::from_fn(move || {
            let symbol = (bits != 0).then(|| 64 * word + bits.trailing_zeros() as usize);
            bits &= bits.wrapping_sub(1);
            symbol
        })
    })
}

/// The users by the number of their symbols.
struct Users {
    /// Histograms, symbol by symbol: `columns[symbol][user]`.
    columns: Vec<Vec<u32>>,
    /// The cell of a user none of whose symbols is counted.
    start: Vec<u32>,
    /// (number of symbols, number of them counted) of a cell.
    cells: Vec<(i64, i64)>,
}

impl Users {
    fn new(scheffe: Scheffe<'_>) -> Result<Self> {
        let Scheffe { histograms, symbols, .. } = scheffe;
        let sizes: Option<Vec<u32>> = histograms
            .chunks(symbols)
            .map(|counts| counts.iter().try_fold(0u32, |size, &count| size.checked_add(count)))
            .collect();
        let too_many = || Error::too_large("users have too many symbols: take fewer of each");
        let sizes = sizes.filter(|_| histograms.len().is_multiple_of(symbols)).ok_or_else(too_many)?;
        let mut distinct = sizes.clone();
        distinct.sort_unstable_by_key(|&size| Reverse(size));
        distinct.dedup();
        let mut cells = Vec::new();
        let mut first = Vec::new();
        for &size in &distinct {
            first.push(u32::try_from(cells.len()).map_err(|_| too_many())?);
            if cells.len() + size as usize >= 1 << 26 {
                return Err(too_many());
            }
            cells.extend((0..=i64::from(size)).map(|count| (i64::from(size), count)));
        }
        let place = |size: &u32| distinct.partition_point(|other| other > size);
        let start = sizes.iter().map(|size| first[place(size)]).collect();
        let columns = (0..symbols)
            .map(|symbol| histograms.iter().skip(symbol).step_by(symbols).copied().collect())
            .collect();
        Ok(Self { columns, start, cells })
    }

    /// The most symbols of a user.
    fn largest_size(&self) -> u64 {
        self.cells.first().map_or(0, |cell| cell.0.unsigned_abs())
    }
}

/// The users' cells for one set after the other.
struct Counted<'a, const WORDS: usize> {
    users: &'a Users,
    set: Set<WORDS>,
    /// The cell of every user.
    cells: Vec<u32>,
    tables: Vec<[u32; TABLES]>,
    /// (number of symbols, number of them in the set, number of such users)
    found: Vec<(i64, i64, i64)>,
}

impl<'a, const WORDS: usize> Counted<'a, WORDS> {
    fn new(users: &'a Users) -> Self {
        let tables = vec![[0; TABLES]; users.cells.len()];
        Self { users, set: [0; WORDS], cells: users.start.clone(), tables, found: Vec::new() }
    }

    /// How many users have how many symbols, and how many of these in the set.
    fn of(&mut self, set: &Set<WORDS>, kernel: Kernel) -> &[(i64, i64, i64)] {
        let size = |set: &Set<WORDS>| set.iter().map(|word| word.count_ones()).sum::<u32>();
        let mut changed = [0; WORDS];
        changed.iter_mut().zip(set).zip(&self.set).for_each(|((changed, new), old)| *changed = new ^ old);
        if size(&changed) > size(set) {
            self.cells.copy_from_slice(&self.users.start);
            (self.set, changed) = ([0; WORDS], *set);
        }
        for symbol in symbols_of(changed) {
            let enters = set[symbol / 64] >> (symbol % 64) & 1 == 1;
            move_cells(kernel, &mut self.cells, &self.users.columns[symbol], enters);
        }
        self.set = *set;
        for (index, &cell) in self.cells.iter().enumerate() {
            let number = &mut self.tables[cell as usize][index % TABLES];
            *number = number.wrapping_add(1);
        }
        self.found.clear();
        for (&(size, count), numbers) in self.users.cells.iter().zip(&mut self.tables) {
            let users = numbers.iter().map(|&number| i64::from(number)).sum();
            *numbers = [0; TABLES];
            if users > 0 {
                self.found.push((size, count, users));
            }
        }
        &self.found
    }
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn move_cells_body(cells: &mut [u32], column: &[u32], enters: bool) {
    for (cell, &count) in cells.iter_mut().zip(column) {
        *cell = if enters { cell.wrapping_add(count) } else { cell.wrapping_sub(count) };
    }
}

dispatched! {
    /// Moves all users when a symbol enters the set or leaves it.
    fn move_cells(cells: &mut [u32], column: &[u32], enters: bool)
        = move_cells_body(cells, column, enters),
          move_cells_body(cells, column, enters),
          move_cells_body(cells, column, enters);
}
