//! Rows of users added up to bounded sums over users.

use super::{
    PARTS, SKIPPED,
    cells::{Cell, UserCells},
    choice::{Choice, Rule},
    columns::{Column, Kept},
    index::Digester,
    partition::Workspace,
    rows::Rows,
    totals::{Outgoing, Totals, Widths},
    walk::{Reach, Turns, walked},
};
use crate::{Error, Result, control::Control, memory::room};
use rayon::prelude::*;
use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

pub use super::rows::Batch;

/// The least memory: some blocks of rows.
pub const LEAST_MEMORY: usize = 1 << 16;
/// The most values of a row.
pub const MOST_VALUES: usize = 1 << 10;
/// The most columns.
pub const MOST_COLUMNS: usize = 1 << 10;
/// The largest weight of [`TableSums::split`]: those of fewer than 2^32 users add up in 64 bits.
pub const MOST_WEIGHT: u64 = i32::MAX.unsigned_abs() as u64;

/// Keys of users that wait before they are added to the sums.
const WAITING: usize = 1 << 14;

/// What is asked of [`TableSums::bounded`].
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// The number of users: all codes of rows' users are below. It decides how wide sums are, and nothing else.
    pub users: usize,
    /// The place of every key, by its code, in the canonical order of keys' values, or [`SKIPPED`].
    pub key_order: &'a [u32],
    /// The most keys of a user.
    pub max_keys: Option<usize>,
    /// Which keys a user keeps.
    pub rule: Rule<'a>,
    /// The integers that a user adds to each kept key.
    pub columns: &'a [Column],
}

impl Bounds<'_> {
    /// The codes of keys by rank.
    fn codes(&self) -> Result<Vec<u32>> {
        let codes = codes_by_rank("key_order", self.key_order)?;
        if let Rule::Random { key_digests, .. } = self.rule
            && key_digests.len() != codes.len()
        {
            return Err(Error::invalid("key_digests", "must have a digest for every key of key_order"));
        }
        Ok(codes)
    }
}

/// What is asked of [`TableSums::split_by_key`], whose rows are in cells: each a key and a bin.
#[derive(Debug, Clone, Copy)]
pub struct Splits<'a> {
    /// The place of every cell, by its code, in the order of keys' places and then of bins, or [`SKIPPED`].
    pub cell_order: &'a [u32],
    /// The place of the key of every cell, by the cell's place: they do not decrease.
    pub keys: &'a [u32],
    /// Whether rows in a cell have weight, by the cell's place. Rows elsewhere say only that the user has the key.
    pub inside: &'a [bool],
    /// The weight that a user has in every kept key.
    pub weight: u64,
}

/// Sums over users by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySums {
    /// The codes of the keys that some user kept, in the canonical order.
    pub keys: Vec<u32>,
    /// For every column the sum over users of each of these keys.
    pub columns: Vec<Vec<i64>>,
}

/// Rows (user, key, integers), to be added up by user and key.
#[derive(Debug)]
pub struct TableSums {
    rows: Rows,
    /// Whether a call that adds rows began and did not end.
    broken: bool,
}

/// The codes of keys by rank, from the rank of every code.
fn codes_by_rank(name: &'static str, key_order: &[u32]) -> Result<Vec<u32>> {
    let refused =
        || Error::invalid(name, "must have a place of its own below its length for every key, or 2^32 - 1");
    if u32::try_from(key_order.len()).is_err() {
        return Err(Error::too_large("at most 2^32 - 1 keys are taken"));
    }
    let mut codes = room(name, key_order.len())?;
    codes.resize(key_order.len(), SKIPPED);
    for (code, &rank) in (0..SKIPPED).zip(key_order) {
        if rank == SKIPPED {
            continue;
        }
        let place = codes.get_mut(rank as usize).ok_or_else(refused)?;
        if std::mem::replace(place, code) != SKIPPED {
            return Err(refused());
        }
    }
    Ok(codes)
}

fn check_weight(weight: u64) -> Result<()> {
    if weight > MOST_WEIGHT {
        return Err(Error::invalid("weight", format!("{weight} is not at most {MOST_WEIGHT}")));
    }
    Ok(())
}

/// Splits a weight over some cells of a user by their rows. There must be room for them.
fn split_cells<'a>(weight: u64, cells: impl Iterator<Item = Cell<'a>> + Clone, outgoing: &mut Outgoing) {
    let rows: u128 = cells.clone().map(|cell| u128::from(cell.rows)).sum();
    let (mut cumulated, mut before) = (0, 0);
    for cell in cells {
        cumulated += u128::from(cell.rows);
        // At most the weight, which is below 2^31.
        let upto = i64::try_from(u128::from(weight) * cumulated / rows).unwrap_or_default();
        outgoing.key(cell.rank);
        outgoing.narrow(upto - before);
        before = upto;
    }
}

/// What one thread works with while it goes through users.
struct Worker {
    kept: Vec<usize>,
    /// Where the keys of a user begin among the user's cells.
    starts: Vec<usize>,
    ranked: Vec<(u64, usize)>,
    outgoing: Outgoing,
    users: u64,
}

impl TableSums {
    /// No rows of so many values each, which take at most about `memory` bytes and go to a temporary file in `directory`
    /// beyond, without a name.
    ///
    /// The file holds private data until it is closed. Batches, and what is being added up, come on top of the memory.
    ///
    /// # Errors
    /// For more than [`MOST_VALUES`] values, and less than [`LEAST_MEMORY`] bytes.
    pub fn new(values: usize, memory: usize, directory: Option<PathBuf>) -> Result<Self> {
        if values > MOST_VALUES {
            return Err(Error::invalid("n_values", format!("{values} is too many; at most {MOST_VALUES}")));
        }
        if memory < LEAST_MEMORY {
            return Err(Error::invalid("memory", format!("{memory} is too little; at least {LEAST_MEMORY}")));
        }
        Ok(Self { rows: Rows::new(values, memory, directory)?, broken: false })
    }

    fn check(&self) -> Result<()> {
        if self.broken {
            return Err(Error::invalid("rows", "an earlier call failed while it added rows; start anew"));
        }
        Ok(())
    }

    /// Works on rows, which are known to be all there only when it succeeds.
    fn change(&mut self, work: impl FnOnce(&mut Rows) -> Result<()>) -> Result<()> {
        self.check()?;
        self.broken = true;
        work(&mut self.rows)?;
        self.broken = false;
        Ok(())
    }

    /// Adds rows.
    ///
    /// # Errors
    /// For columns of other lengths; nothing is added. [`Error::Memory`], [`Error::Disk`], [`Error::Canceled`]: after
    /// these no later call is answered, as some of the rows may have been added.
    pub fn add(&mut self, batch: Batch<'_>, control: &Control) -> Result<()> {
        self.rows.check(batch)?;
        self.change(|rows| rows.add(batch, control))
    }

    /// For each key the sums over users of the integers of the users who keep it.
    ///
    /// A user keeps at most `max_keys` keys and adds the integers of the columns to each, every one in
    /// [`Column::range`]. Sums beyond 64 bits are clamped once all users are in them (see [`super`]).
    ///
    /// # Errors
    /// For columns, key orders, digests and numbers of users that do not fit the rows; [`Error::Memory`],
    /// [`Error::Disk`], [`Error::Canceled`]. None depends on values.
    pub fn bounded(&mut self, bounds: &Bounds<'_>, control: &Control) -> Result<KeySums> {
        let values = self.rows.record() - 1;
        if bounds.columns.len() > MOST_COLUMNS {
            return Err(Error::invalid("columns", format!("at most {MOST_COLUMNS} are taken")));
        }
        let mut layout = room("columns", bounds.columns.len())?;
        let mut widths = Widths { narrow: 1, wide: 0 };
        for column in bounds.columns {
            let (low, high) = column.range(values)?;
            let largest = u128::from(low.unsigned_abs().max(high.unsigned_abs()));
            let narrow = largest * bounds.users.max(1) as u128 <= i64::MAX.unsigned_abs().into();
            layout.push(match column {
                Column::Users => Place::Narrow(0),
                _ if narrow => {
                    widths.narrow += 1;
                    Place::Narrow(widths.narrow - 1)
                }
                _ => {
                    widths.wide += 1;
                    Place::Wide(widths.wide - 1)
                }
            });
        }
        let codes = bounds.codes()?;
        self.change(|rows| rows.settle(control))?;
        self.check_codes(
            bounds.users,
            codes.len(),
            "key_order: must have a place for every key of the rows",
        )?;
        let choice = Choice::new(bounds.rule, bounds.max_keys, &codes);
        let per_user = |user: u32, cells: UserCells<'_>, worker: &mut Worker| {
            let rank = |index| cells.cell(index).rank;
            choice.choose(user, cells.len(), rank, &mut worker.ranked, &mut worker.kept)?;
            worker.outgoing.reserve(worker.kept.len(), widths)?;
            let kept = Kept { keys: worker.kept.len() as u64 };
            for &index in &worker.kept {
                let cell = cells.cell(index);
                worker.outgoing.key(cell.rank);
                worker.outgoing.narrow(1);
                for (column, place) in bounds.columns.iter().zip(&layout) {
                    match place {
                        Place::Narrow(0) => {}
                        Place::Narrow(_) => worker.outgoing.narrow(column.integer(cell, kept)),
                        Place::Wide(_) => worker.outgoing.wide(column.integer(cell, kept)),
                    }
                }
            }
            Ok(())
        };
        let rank = |key: u32| bounds.key_order[key as usize];
        let (totals, _) = self.total(rank, codes.len(), widths, per_user, control)?;
        let occupied = |rank: &usize| totals.narrow(*rank, 0) > 0;
        let count = (0..codes.len()).filter(occupied).count();
        let mut keys = room("keys", count)?;
        keys.extend((0..codes.len()).filter(occupied).map(|rank| codes[rank]));
        let mut columns = room("columns", layout.len())?;
        for place in layout {
            let mut sums = room("keys", count)?;
            sums.extend((0..codes.len()).filter(occupied).map(|rank| match place {
                Place::Narrow(index) => totals.narrow(rank, index),
                Place::Wide(index) => totals.wide(rank, index),
            }));
            columns.push(sums);
        }
        Ok(KeySums { keys, columns })
    }

    /// For each key what users raise it to, one after the other (see [`super::walk`]), and these keys in canonical order.
    ///
    /// Users come in the order of the keyed digests of their values, whatever the order of rows. The rule must be
    /// [`Rule::Random`], whose coins are those of the order too. All keys that users keep are in memory, 4 bytes each.
    ///
    /// # Errors
    /// As [`TableSums::bounded`] and [`Reach::check`].
    pub fn walked(
        &mut self,
        key_order: &[u32],
        max_keys: usize,
        rule: Rule<'_>,
        reach: Reach,
        control: &Control,
    ) -> Result<KeySums> {
        reach.check(max_keys)?;
        let Rule::Random { users, key_digests, key } = rule else {
            return Err(Error::invalid("rule", "must be 'random': users come in an order that is drawn"));
        };
        let codes = codes_by_rank("key_order", key_order)?;
        if key_digests.len() != codes.len() {
            return Err(Error::invalid("key_digests", "must have a digest for every key of key_order"));
        }
        self.change(|rows| rows.settle(control))?;
        self.check_codes(users.len(), codes.len(), "key_order: must have a place for every key of the rows")?;
        let (choice, digester) = (Choice::new(rule, Some(max_keys), &codes), Digester::new(key));
        let turns = Mutex::new(Turns::default());
        let per_user = |user: u32, cells: UserCells<'_>, worker: &mut Worker| {
            let rank = |index| cells.cell(index).rank;
            choice.choose(user, cells.len(), rank, &mut worker.ranked, &mut worker.kept)?;
            let missing = || Error::invalid("users", "must have the values of all users of the rows");
            let digest = users.digest(user, &digester).ok_or_else(missing)?;
            let kept = worker.kept.iter().map(|&index| cells.cell(index).rank);
            turns.lock().unwrap_or_else(PoisonError::into_inner).add(digest, user, kept)
        };
        let rank = |key: u32| key_order[key as usize];
        self.total(rank, 0, Widths { narrow: 1, wide: 0 }, per_user, control)?;
        let mut turns = turns.into_inner().unwrap_or_else(PoisonError::into_inner);
        let order = turns.in_order(|user, other| users.compare(user, other));
        let sums = walked(order, codes.len(), max_keys, reach, control)?;
        // A key that somebody kept has a sum of at least length / sqrt(max_keys), rounded down.
        let occupied = || (0..codes.len()).filter(|&rank| sums[rank] > 0);
        let count = occupied().count();
        let (mut keys, mut column) = (room("keys", count)?, room("keys", count)?);
        keys.extend(occupied().map(|rank| codes[rank]));
        column.extend(occupied().map(|rank| sums[rank]));
        let mut columns = room("columns", 1)?;
        columns.push(column);
        Ok(KeySums { keys, columns })
    }

    /// The weight of every user split over the bins of the user's rows, summed over users; and how many users there are.
    ///
    /// Keys are the bins 0, ..., bins - 1. A user with c rows, `c_i` of them in bins up to i, adds floor(weight `c_i` / c) -
    /// floor(weight `c_(i-1)` / c) to bin i, which is the whole weight over all bins.
    ///
    /// # Errors
    /// For a weight above [`MOST_WEIGHT`] and rows with other keys; [`Error::TooLarge`], [`Error::Memory`],
    /// [`Error::Disk`], [`Error::Canceled`].
    pub fn split(&mut self, bins: usize, weight: u64, control: &Control) -> Result<(Vec<i64>, u64)> {
        check_weight(weight)?;
        let mut sums = crate::memory::zeros("bins", bins, "use fewer bins")?;
        self.change(|rows| rows.settle(control))?;
        self.check_codes(usize::MAX, bins, "bins: must be above all keys of the rows")?;
        let widths = Widths { narrow: 1, wide: 0 };
        let per_user = |_, cells: UserCells<'_>, worker: &mut Worker| {
            worker.outgoing.reserve(cells.len(), widths)?;
            split_cells(weight, (0..cells.len()).map(|index| cells.cell(index)), &mut worker.outgoing);
            Ok(())
        };
        let (totals, users) = self.total(|key| key, bins, widths, per_user, control)?;
        sums.iter_mut().enumerate().for_each(|(bin, sum)| *sum = totals.narrow(bin, 0));
        Ok((sums, users))
    }

    /// The weight of every user in each kept key split over the bins of the user's rows there, summed over users: for
    /// every cell by its place.
    ///
    /// The rows' keys are codes of cells. Which keys a user keeps is as in [`Self::bounded`], and within a key weight is
    /// split as in [`Self::split`] over the cells with weight. The columns of the bounds are not looked at.
    ///
    /// # Errors
    /// For a weight above [`MOST_WEIGHT`], and for orders and digests that do not fit the rows or each other;
    /// [`Error::Memory`], [`Error::Disk`], [`Error::Canceled`]. None depends on values.
    pub fn split_by_key(
        &mut self,
        bounds: &Bounds<'_>,
        splits: &Splits<'_>,
        control: &Control,
    ) -> Result<Vec<i64>> {
        check_weight(splits.weight)?;
        let codes = bounds.codes()?;
        let cells = codes_by_rank("cell_order", splits.cell_order)?.len();
        let fits =
            splits.keys.is_sorted() && splits.keys.last().is_none_or(|&key| (key as usize) < codes.len());
        let listed = splits
            .cell_order
            .iter()
            .filter(|&&place| place != SKIPPED)
            .all(|&place| (place as usize) < splits.keys.len() && (place as usize) < splits.inside.len());
        if !fits || !listed {
            return Err(Error::invalid(
                "keys",
                "must be a place of key_order for every place of cell_order, in order",
            ));
        }
        let mut sums = crate::memory::zeros("cell_order", cells, "use fewer cells")?;
        self.change(|rows| rows.settle(control))?;
        self.check_codes(bounds.users, cells, "cell_order: must have a place for every cell of the rows")?;
        let choice = Choice::new(bounds.rule, bounds.max_keys, &codes);
        let widths = Widths { narrow: 1, wide: 0 };
        let per_user = |user: u32, cells: UserCells<'_>, worker: &mut Worker| {
            let key = |index: usize| splits.keys[cells.cell(index).rank as usize];
            worker.starts.clear();
            worker
                .starts
                .try_reserve(cells.len())
                .map_err(|_| Error::memory("rows: there is no memory for the keys of a user"))?;
            // Cells are in the order of places, so those of a key follow each other.
            worker
                .starts
                .extend((0..cells.len()).filter(|&index| index == 0 || key(index) != key(index - 1)));
            let starts = &worker.starts;
            choice.choose(
                user,
                starts.len(),
                |number| key(starts[number]),
                &mut worker.ranked,
                &mut worker.kept,
            )?;
            worker.outgoing.reserve(cells.len(), widths)?;
            for &number in &worker.kept {
                let end = starts.get(number + 1).copied().unwrap_or(cells.len());
                let weighty = (starts[number]..end)
                    .map(|index| cells.cell(index))
                    .filter(|cell| splits.inside[cell.rank as usize]);
                split_cells(splits.weight, weighty, &mut worker.outgoing);
            }
            Ok(())
        };
        let rank = |cell: u32| splits.cell_order[cell as usize];
        let (totals, _) = self.total(rank, cells, widths, per_user, control)?;
        sums.iter_mut().enumerate().for_each(|(place, sum)| *sum = totals.narrow(place, 0));
        Ok(sums)
    }

    /// Refuses rows with codes beyond those of users and keys.
    fn check_codes(&self, users: usize, keys: usize, message: &'static str) -> Result<()> {
        let (user, key) = self.rows.largest();
        if self.rows.len() == 0 {
            return Ok(());
        }
        if user as usize >= users {
            return Err(Error::invalid("users", "must have the values of all users of the rows"));
        }
        if key as usize >= keys {
            let (argument, message) = message.split_once(": ").unwrap_or(("keys", message));
            return Err(Error::invalid(argument, message));
        }
        Ok(())
    }

    /// The sums of what `per_user` adds for each user with rows, and the number of these users: the one place where users
    /// are gone through. Rows of keys whose rank is [`SKIPPED`] are left out first.
    fn total(
        &self,
        rank: impl Fn(u32) -> u32 + Sync,
        keys: usize,
        widths: Widths,
        per_user: impl Fn(u32, UserCells<'_>, &mut Worker) -> Result<()> + Sync,
        control: &Control,
    ) -> Result<(Totals, u64)> {
        control.set_total(PARTS);
        let workers = rayon::current_num_threads().clamp(1, PARTS);
        // Threads share sums of their own where all of them would take too much memory.
        let most = self.rows.memory() / 2 / (keys.max(1).saturating_mul(widths.bytes()));
        let mut totals = room("keys", workers)?;
        for _ in 0..most.clamp(1, workers) {
            totals.push(Mutex::new(Totals::new(keys, widths)?));
        }
        let users = u64::from(self.rows.largest().0) + 1;
        let next = AtomicUsize::new(0);
        let work = |number: usize| {
            let own = &totals[number % totals.len()];
            let mut worker = Worker {
                kept: Vec::new(),
                starts: Vec::new(),
                ranked: Vec::new(),
                outgoing: Outgoing::default(),
                users: 0,
            };
            let mut workspace = Workspace::new(&self.rows, users, workers)?;
            loop {
                let part = next.fetch_add(1, Ordering::Relaxed);
                if part >= PARTS {
                    return Ok(worker.users);
                }
                let flush = |outgoing: &mut Outgoing| {
                    own.lock().unwrap_or_else(PoisonError::into_inner).add(outgoing);
                };
                workspace.visit(&self.rows, part, &rank, control, |user, cells| {
                    worker.users += 1;
                    per_user(user, cells, &mut worker)?;
                    if worker.outgoing.len() >= WAITING {
                        flush(&mut worker.outgoing);
                    }
                    Ok(())
                })?;
                flush(&mut worker.outgoing);
                control.advance(1)?;
            }
        };
        let counts = (0..workers).into_par_iter().with_max_len(1).map(work).collect::<Result<Vec<u64>>>()?;
        let mut whole: Option<Totals> = None;
        for other in totals {
            let other = other.into_inner().unwrap_or_else(PoisonError::into_inner);
            match &mut whole {
                None => whole = Some(other),
                Some(whole) => whole.merge(&other),
            }
        }
        let whole = whole.map_or_else(|| Totals::new(keys, widths), Ok)?;
        Ok((whole, counts.into_iter().sum()))
    }
}

/// Which of a key's sums a column is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Narrow(usize),
    Wide(usize),
}
