//! The rows of one part by user and key.

use super::{
    SKIPPED,
    cells::{Cells, UserCells},
    rows::{Rows, place_and_key, user_at},
};
use crate::{Error, Result, control::Control, memory::room};

/// Rows or users between two looks at the control.
const CHECK_EVERY: usize = 1 << 16;

/// What one thread needs to add up parts.
#[derive(Debug)]
pub(super) struct Workspace {
    /// Records, with the user's place in the part and the key's rank in the first word.
    records: Vec<u64>,
    /// Where the rows of the user at each place start.
    starts: Vec<u32>,
    /// Rows by user: the key's rank, and in the lower half the number of the record.
    order: Vec<u64>,
    cells: Cells,
    record: usize,
    /// The most rows sorted at a time.
    most: usize,
}

fn no_memory<E>(_: E) -> Error {
    Error::memory("rows: there is no memory to sort them")
}

impl Workspace {
    /// For the rows of so many users (the largest code and one), when `threads` parts are added up at a time.
    pub(super) fn new(rows: &Rows, users: u64, threads: usize) -> Result<Self> {
        let places = usize::try_from(users.div_ceil(super::PARTS as u64)).unwrap_or(usize::MAX);
        let mut starts = room("users", places.saturating_add(1))?;
        starts.resize(places + 1, 0);
        // The record, and its word in the order.
        let bytes = 8 * (rows.record() + 1);
        // Their numbers must fit 32 bits.
        let most = (rows.memory() / (8 * threads * bytes)).clamp(1 << 10, 1 << 31);
        Ok(Self {
            records: Vec::new(),
            starts,
            order: Vec::new(),
            cells: Cells::new(rows.record() - 1),
            record: rows.record(),
            most,
        })
    }

    /// Calls with every user of a part and that user's cells, for the ranks of keys.
    pub(super) fn visit(
        &mut self,
        rows: &Rows,
        part: usize,
        rank: impl Fn(u32) -> u32,
        control: &Control,
        mut visit: impl FnMut(u32, UserCells<'_>) -> Result<()>,
    ) -> Result<()> {
        let room = usize::try_from(rows.part_len(part)).unwrap_or(usize::MAX).min(self.most) * self.record;
        self.records.clear();
        self.records.try_reserve(room).map_err(no_memory)?;
        // Pieces of what is added up, each about twice as long as the next: merging all takes n log n steps.
        let mut pieces: Vec<Cells> = Vec::new();
        rows.pieces(part, |records| {
            for record in records.chunks_exact(self.record) {
                let (place, key) = place_and_key(record[0]);
                let rank = rank(key);
                if rank == SKIPPED {
                    continue;
                }
                if self.records.len() / self.record == self.most {
                    self.add_up(&mut pieces, control)?;
                }
                self.records.push(u64::from(place) << 32 | u64::from(rank));
                self.records.extend_from_slice(&record[1..]);
            }
            control.check()
        })?;
        let mut visit = |place: u32, cells: UserCells<'_>| visit(user_at(part, place), cells);
        if pieces.is_empty() {
            self.sorted(control, |_, cells| cells.by_user(&mut visit))
        } else {
            self.add_up(&mut pieces, control)?;
            let mut all = Cells::new(self.record - 1);
            while let Some(last) = pieces.pop() {
                control.check()?;
                all = last.merged(&all)?;
            }
            all.by_user(&mut visit)
        }
    }

    /// Adds up the rows so far to a piece, and merges pieces that are nearly as long as the next.
    fn add_up(&mut self, pieces: &mut Vec<Cells>, control: &Control) -> Result<()> {
        let mut all = Cells::new(self.record - 1);
        self.sorted(control, |_, cells| all.append(cells))?;
        self.records.clear();
        while let Some(last) = pieces.pop_if(|last| last.len() < 2 * all.len()) {
            control.check()?;
            all = last.merged(&all)?;
        }
        pieces.push(all);
        Ok(())
    }

    /// Calls with the places of users and their cells, one user after the other, of the rows so far.
    fn sorted(&mut self, control: &Control, mut visit: impl FnMut(u32, &Cells) -> Result<()>) -> Result<()> {
        let count = self.records.len() / self.record;
        self.starts.fill(0);
        for record in self.records.chunks_exact(self.record) {
            self.starts[place_of(record[0])] += 1;
        }
        let mut start = 0;
        for entry in &mut self.starts {
            // Fewer than 2^32 rows.
            start += std::mem::replace(entry, start);
        }
        self.order.clear();
        self.order.try_reserve(count).map_err(no_memory)?;
        self.order.resize(count, 0);
        for (number, record) in (0_u64..).zip(self.records.chunks_exact(self.record)) {
            let next = &mut self.starts[place_of(record[0])];
            self.order[*next as usize] = record[0] << 32 | number;
            *next += 1;
        }
        // Every start has moved to its end.
        let mut start = 0;
        for (place, &end) in (0_u32..).zip(&self.starts) {
            if (place as usize).is_multiple_of(CHECK_EVERY) {
                control.check()?;
            }
            let end = end as usize;
            if start == end {
                continue;
            }
            let rows = &mut self.order[start..end];
            start = end;
            rows.sort_unstable();
            self.cells.clear();
            self.cells.reserve(rows.len())?;
            for &entry in &*rows {
                let number = lower(entry) as usize;
                let values = &self.records[number * self.record + 1..(number + 1) * self.record];
                self.cells.add_row(u64::from(place) << 32 | entry >> 32, values);
            }
            visit(place, &self.cells)?;
        }
        Ok(())
    }
}

fn place_of(head: u64) -> usize {
    (head >> 32) as usize
}

#[allow(clippy::cast_possible_truncation)]
fn lower(word: u64) -> u32 {
    word as u32
}
