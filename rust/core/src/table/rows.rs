//! Rows in parts by user, in memory and on disk.

use super::{PART_BITS, PARTS, spill::Spill};
use crate::{
    Error, Result,
    control::Control,
    memory::{copied, room},
};
use rayon::prelude::*;
use std::path::PathBuf;

/// Rows put into parts at a time.
const BLOCK: usize = 1 << 17;
/// No fewer, however little memory there is.
const SMALL_BLOCK: usize = 1 << 8;

/// Rows, column after column.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The code of each row's user.
    pub users: &'a [u32],
    /// The code of each row's key.
    pub keys: &'a [u32],
    /// Every value of each row.
    pub values: &'a [&'a [i64]],
}

impl Batch<'_> {
    fn len(&self) -> usize {
        self.users.len()
    }

    /// Refuses columns of other lengths, and another number of them.
    fn check(&self, values: usize) -> Result<()> {
        let len = self.len();
        if self.values.len() != values {
            let given = self.values.len();
            return Err(Error::invalid(
                "values",
                format!("{given} columns are given; n_values = {values} are needed"),
            ));
        }
        if self.keys.len() != len {
            return Err(Error::invalid("keys", "must have a code for every row of users"));
        }
        if self.values.iter().any(|column| column.len() != len) {
            return Err(Error::invalid("values", "every column must have an integer for every row of users"));
        }
        Ok(())
    }
}

/// Some rows, part after part: a record has a word for the user and the key, and one for every value.
#[derive(Debug)]
struct Run {
    words: Vec<u64>,
    /// Part p is the words `starts[p]..starts[p + 1]`.
    starts: Vec<usize>,
    /// The largest codes of a user and of a key.
    largest: (u32, u32),
}

impl Run {
    fn new(batch: Batch<'_>) -> Result<Self> {
        let record = 1 + batch.values.len();
        let mut next = [0_usize; PARTS + 1];
        for &user in batch.users {
            next[part_of(user) + 1] += record;
        }
        for part in 0..PARTS {
            next[part + 1] += next[part];
        }
        let starts = copied("rows", &next)?;
        let mut words: Vec<u64> = room("rows", batch.len() * record)?;
        words.resize(batch.len() * record, 0);
        let mut largest = (0, 0);
        let ids = batch.users.iter().zip(batch.keys).enumerate();
        match batch.values {
            [values] => {
                for ((_, (&user, &key)), &value) in ids.zip(*values) {
                    largest = (user.max(largest.0), key.max(largest.1));
                    let place = &mut next[part_of(user)];
                    words[*place..*place + 2].copy_from_slice(&[head(user, key), value.cast_unsigned()]);
                    *place += 2;
                }
            }
            columns => {
                for (row, (&user, &key)) in ids {
                    largest = (user.max(largest.0), key.max(largest.1));
                    let place = &mut next[part_of(user)];
                    let record = &mut words[*place..*place + record];
                    *place += record.len();
                    record[0] = head(user, key);
                    for (word, column) in record[1..].iter_mut().zip(columns) {
                        *word = column[row].cast_unsigned();
                    }
                }
            }
        }
        Ok(Self { words, starts, largest })
    }

    fn part(&self, part: usize) -> &[u64] {
        &self.words[self.starts[part]..self.starts[part + 1]]
    }
}

fn part_of(user: u32) -> usize {
    user as usize % PARTS
}

/// The first word of a record.
fn head(user: u32, key: u32) -> u64 {
    u64::from(user) << 32 | u64::from(key)
}

/// The user's place in its part and the key of a record, from its first word.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn place_and_key(head: u64) -> (u32, u32) {
    ((head >> (32 + PART_BITS)) as u32, head as u32)
}

/// The code of the user at a place of a part.
pub(super) fn user_at(part: usize, place: u32) -> u32 {
    // There are 2^8 parts, and places are codes without their 8 lowest bits.
    place << PART_BITS | u32::try_from(part).unwrap_or_default()
}

/// Where rows are, until they are added up.
#[derive(Debug)]
pub(super) struct Rows {
    values: usize,
    memory: usize,
    directory: Option<PathBuf>,
    /// Rows that are too few for a run, column after column.
    waiting: (Vec<u32>, Vec<u32>, Vec<Vec<i64>>),
    runs: Vec<Run>,
    /// Words in runs.
    words: usize,
    spill: Option<Spill>,
    /// Where the parts of every spilled piece start in the file.
    spilled: Vec<Vec<u64>>,
    len: u64,
    largest: (u32, u32),
}

impl Rows {
    /// No rows.
    pub(super) fn new(values: usize, memory: usize, directory: Option<PathBuf>) -> Result<Self> {
        let mut columns = room("n_values", values)?;
        columns.resize_with(values, Vec::new);
        Ok(Self {
            values,
            memory,
            directory,
            waiting: (Vec::new(), Vec::new(), columns),
            runs: Vec::new(),
            words: 0,
            spill: None,
            spilled: Vec::new(),
            len: 0,
            largest: (0, 0),
        })
    }

    /// Words of a record.
    pub(super) fn record(&self) -> usize {
        1 + self.values
    }

    /// Bytes that rows may take in memory.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The largest codes of a user and of a key, once no rows wait.
    pub(super) fn largest(&self) -> (u32, u32) {
        self.largest
    }

    /// The number of rows of a block: so many that some blocks fit the memory.
    fn block(&self) -> usize {
        (self.memory / (8 * 8 * self.record())).clamp(SMALL_BLOCK, BLOCK)
    }

    /// Refuses a batch that does not fit the others.
    pub(super) fn check(&self, batch: Batch<'_>) -> Result<()> {
        batch.check(self.values)
    }

    /// Adds rows. After an error it is unknown which of them were added.
    pub(super) fn add(&mut self, batch: Batch<'_>, control: &Control) -> Result<()> {
        let block = self.block();
        let len = batch.len();
        // Rows that wait come first, so that fewer than a block of them ever do.
        let mut start = 0;
        if !self.waiting.0.is_empty() || len < block {
            start = len.min(block - self.waiting.0.len());
            self.wait(batch, 0, start)?;
            if self.waiting.0.len() == block {
                self.settle(control)?;
            }
        }
        let whole = start + (len - start) / block * block;
        let at_once = (self.memory / (4 * 8 * self.record()) / block).max(1) * block;
        let mut group = start;
        while group < whole {
            let end = whole.min(group + at_once);
            let runs = self.runs_of(batch, group, end, block, control)?;
            runs.into_iter().try_for_each(|run| self.push(run, control))?;
            group = end;
        }
        self.wait(batch, whole, len)?;
        Ok(())
    }

    /// Runs of the rows from `start` to `end`, which are whole blocks.
    fn runs_of(
        &self,
        batch: Batch<'_>,
        start: usize,
        end: usize,
        block: usize,
        control: &Control,
    ) -> Result<Vec<Run>> {
        (start..end)
            .into_par_iter()
            .step_by(block)
            .map(|first| {
                control.check()?;
                let rows = first..first + block;
                let mut values = room("values", self.values)?;
                values.extend(batch.values.iter().map(|column| &column[rows.clone()]));
                Run::new(Batch {
                    users: &batch.users[rows.clone()],
                    keys: &batch.keys[rows],
                    values: &values,
                })
            })
            .collect()
    }

    /// Keeps rows of a batch until there are enough for a run.
    fn wait(&mut self, batch: Batch<'_>, start: usize, end: usize) -> Result<()> {
        fn extend<T: Copy>(list: &mut Vec<T>, more: &[T]) -> Result<()> {
            list.try_reserve(more.len()).map_err(|_| Error::memory("rows: there is no memory for more"))?;
            list.extend_from_slice(more);
            Ok(())
        }
        extend(&mut self.waiting.0, &batch.users[start..end])?;
        extend(&mut self.waiting.1, &batch.keys[start..end])?;
        for (waiting, column) in self.waiting.2.iter_mut().zip(batch.values) {
            extend(waiting, &column[start..end])?;
        }
        Ok(())
    }

    /// Makes a run of the rows that wait.
    pub(super) fn settle(&mut self, control: &Control) -> Result<()> {
        if self.waiting.0.is_empty() {
            return Ok(());
        }
        let mut values = room("values", self.values)?;
        values.extend(self.waiting.2.iter().map(Vec::as_slice));
        let run = Run::new(Batch { users: &self.waiting.0, keys: &self.waiting.1, values: &values })?;
        self.waiting.0.clear();
        self.waiting.1.clear();
        self.waiting.2.iter_mut().for_each(Vec::clear);
        self.push(run, control)
    }

    /// Takes a run, and writes all of them to disk when they take too much memory.
    fn push(&mut self, run: Run, control: &Control) -> Result<()> {
        self.runs.try_reserve(1).map_err(|_| Error::memory("rows: there is no memory for more"))?;
        self.words += run.words.len();
        self.len += (run.words.len() / self.record()) as u64;
        self.largest = (self.largest.0.max(run.largest.0), self.largest.1.max(run.largest.1));
        self.runs.push(run);
        if self.words > self.memory / 8 { self.spill(control) } else { Ok(()) }
    }

    fn spill(&mut self, control: &Control) -> Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            None => self.spill.insert(Spill::new(self.directory.as_deref())?),
        };
        let mut starts = room("rows", PARTS + 1)?;
        starts.push(spill.words());
        for part in 0..PARTS {
            control.check()?;
            spill.append(self.runs.iter().map(|run| run.part(part)))?;
            starts.push(spill.words());
        }
        self.spilled.try_reserve(1).map_err(|_| Error::memory("rows: there is no memory for more"))?;
        self.spilled.push(starts);
        self.runs.clear();
        self.words = 0;
        Ok(())
    }

    /// How many rows are in a part, without those that wait.
    pub(super) fn part_len(&self, part: usize) -> u64 {
        let runs: u64 = self.runs.iter().map(|run| run.part(part).len() as u64).sum();
        let spilled: u64 = self.spilled.iter().map(|starts| starts[part + 1] - starts[part]).sum();
        (runs + spilled) / self.record() as u64
    }

    /// Calls with all records of a part, in pieces, without those that wait.
    pub(super) fn pieces(&self, part: usize, mut visit: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
        for run in &self.runs {
            visit(run.part(part))?;
        }
        if let Some(spill) = &self.spill {
            for starts in &self.spilled {
                spill.read((starts[part], starts[part + 1]), self.record(), &mut visit)?;
            }
        }
        Ok(())
    }
}
