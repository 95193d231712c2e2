//! Pools with few kept sets, decided by what is known of their distributions: a grid would cost more.

use super::draws::lowest_terms;
use crate::{
    Error, Result,
    control::Control,
    divergence::is_indistinguishable,
    exact::{Integer, Level, Natural, Rational},
    family::PmfMatrix,
    pmf::Pmf,
};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

/// Kept sets of a pool that is decided here.
const MAX_ROWS: usize = 64;
/// Comparisons of vectors at most.
const MAX_WORK: usize = 20_000;
/// Verdicts that are remembered for the next pool.
const MAX_REMEMBERED: usize = 1 << 20;
/// Probabilities of the distributions that they are about, in integers of any length.
const MAX_REMEMBERED_MASSES: usize = 1 << 21;

/// What the distribution on a kept set depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// The types kept, and how many users of each.
    Users(Vec<(usize, usize)>),
    /// The total of the users' values.
    Total(Integer),
}

/// How keys are made of kept users.
#[derive(Debug, Clone)]
pub enum Keys {
    /// All users of a type are alike, and users of two types may always differ.
    Users,
    /// Every type has a value, and only the total of the kept users matters.
    Totals(Vec<Integer>),
}

impl Keys {
    /// The key of so many kept users of each of the active types.
    pub(super) fn of(&self, active: &[usize], kept: &[usize]) -> Key {
        let pairs = active.iter().copied().zip(kept.iter().copied());
        match self {
            Self::Users => Key::Users(pairs.filter(|&(_, kept)| kept > 0).collect()),
            Self::Totals(values) => Key::Total(pairs.map(|(kind, kept)| &values[kind] * kept).sum()),
        }
    }
}

/// How kept sets are compared.
#[derive(Debug, Clone)]
pub struct Closeness {
    /// e^epsilon
    pub level: Arc<Level>,
    /// The same as in [`is_indistinguishable`].
    pub delta: Rational,
}

/// What is known of a pool.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Distributions that it depends on are not known.
    Pmfs(Vec<Key>),
    /// Whether every stable set has so many users.
    Decided(bool),
    /// It has many kept sets, or takes long.
    Large,
}

/// A pattern of a pool: its counts, the users kept, and the class of the distribution on every kept set.
type Pattern = (Vec<usize>, usize, Vec<Option<usize>>);

/// Vectors of kept users, by the counts and their sum.
type Rows = HashMap<(Vec<usize>, usize), Arc<[Vec<usize>]>>;

/// Decides pools of one dataset, and remembers which distributions are compatible.
#[derive(Debug)]
pub(super) struct Pools {
    keys: Keys,
    known: Known,
    /// Probabilities of distributions that are kept at most.
    most_masses: usize,
}

#[derive(Debug, Default)]
struct Known {
    outputs: usize,
    rows: Rows,
    /// Equal numbers for equal distributions; None where there is none.
    class_of_key: HashMap<Key, Option<usize>>,
    class_of_weights: HashMap<Vec<Natural>, usize>,
    examples: Vec<Pmf<'static>>,
    alike: HashMap<(usize, usize), bool>,
    joins: HashMap<Pattern, Vec<Vec<usize>>>,
}

impl Pools {
    pub(super) fn new(keys: Keys) -> Self {
        Self { keys, known: Known::default(), most_masses: MAX_REMEMBERED_MASSES }
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Forgets everything when that is a lot; not between a question and its answer.
    pub(super) fn tidy(&mut self) {
        let known = &self.known;
        let vectors = MAX_ROWS * known.rows.len().max(MAX_ROWS * known.joins.len());
        if known.class_of_key.len().max(known.alike.len()).max(vectors) > MAX_REMEMBERED
            || known.examples.len().saturating_mul(known.outputs) > self.most_masses
        {
            self.known = Known::default();
        }
    }

    /// Takes the distributions of some keys, a row each, and the rows where there is none.
    pub(super) fn learn(
        &mut self,
        keys: Vec<Key>,
        matrix: &PmfMatrix<'_>,
        missing: &[usize],
        control: &Control,
    ) -> Result<()> {
        let missing: HashSet<usize> = missing.iter().copied().collect();
        self.known.outputs = matrix.outputs();
        for (row, key) in keys.into_iter().enumerate() {
            control.check()?;
            let class = if missing.contains(&row) {
                None
            } else {
                Some(self.known.class(lowest_terms(&matrix.pmf(row), control)?, control)?)
            };
            self.known.class_of_key.insert(key, class);
        }
        Ok(())
    }

    /// Whether no set of fewer than `room` >= 1 users of a pool is stable, if so many users are kept.
    pub(super) fn needs(
        &mut self,
        active: &[usize],
        counts: &[usize],
        kept: usize,
        room: usize,
        closeness: &Closeness,
        control: &Control,
    ) -> Result<Needs> {
        let known = &mut self.known;
        let rows = known
            .rows
            .entry((counts.to_vec(), kept))
            .or_insert_with(|| kept_vectors(counts, kept, MAX_ROWS + 1).into())
            .clone();
        if rows.len() > MAX_ROWS {
            return Ok(Needs::Large);
        }
        let keys: Vec<Key> = rows.iter().map(|row| self.keys.of(active, row)).collect();
        let mut seen = HashSet::new();
        let unknown = |key: &&Key| !known.class_of_key.contains_key(*key) && seen.insert((*key).clone());
        let new: Vec<Key> = keys.iter().filter(unknown).cloned().collect();
        if !new.is_empty() {
            return Ok(Needs::Pmfs(new));
        }
        let classes: Vec<Option<usize>> =
            keys.iter().map(|key| known.class_of_key.get(key).copied().flatten()).collect();
        let pattern = (counts.to_vec(), kept, classes);
        if !known.joins.contains_key(&pattern) {
            let joins = known.joins_of(&rows, &pattern.2, closeness, control)?;
            known.joins.insert(pattern.clone(), joins);
        }
        let joins = &known.joins[&pattern];
        Ok(unavoidable(counts, joins, room.saturating_sub(1)).map_or(Needs::Large, Needs::Decided))
    }
}

impl Known {
    fn class(&mut self, weights: Vec<Natural>, control: &Control) -> Result<usize> {
        if let Some(&class) = self.class_of_weights.get(&weights) {
            return Ok(class);
        }
        let total = weights.iter().sum();
        self.examples.push(Pmf::from_weights(weights.clone(), total, "pmfs", control)?);
        self.class_of_weights.insert(weights, self.examples.len() - 1);
        Ok(self.examples.len() - 1)
    }

    fn compatible(&mut self, a: usize, b: usize, closeness: &Closeness, control: &Control) -> Result<bool> {
        let pair = (a.min(b), a.max(b));
        if let Some(&alike) = self.alike.get(&pair) {
            return Ok(alike);
        }
        let (first, second) = (&self.examples[pair.0], &self.examples[pair.1]);
        let alike = is_indistinguishable(first, second, &closeness.level, &closeness.delta, control)?.holds;
        self.alike.insert(pair, alike);
        Ok(alike)
    }

    /// What incompatible pairs of rows hold together, the smallest first; failing rows are incompatible with all.
    fn joins_of(
        &mut self,
        rows: &[Vec<usize>],
        classes: &[Option<usize>],
        closeness: &Closeness,
        control: &Control,
    ) -> Result<Vec<Vec<usize>>> {
        let mut joins = BTreeSet::new();
        for (place, (row, &class)) in rows.iter().zip(classes).enumerate() {
            control.check()?;
            let Some(class) = class else {
                joins.insert(row.clone());
                continue;
            };
            for (other, &of_other) in rows[..=place].iter().zip(classes) {
                if let Some(of_other) = of_other
                    && !self.compatible(class, of_other, closeness, control)?
                {
                    joins.insert(row.iter().zip(other).map(|(&a, &b)| a.max(b)).collect());
                }
            }
        }
        let mut joins: Vec<Vec<usize>> = joins.into_iter().collect();
        joins.sort_by_key(|join| join.iter().sum::<usize>());
        Ok(joins)
    }
}

/// The first `most` of all vectors up to the counts with this sum, in lexicographic order.
fn kept_vectors(counts: &[usize], kept: usize, most: usize) -> Vec<Vec<usize>> {
    fn extend(
        counts: &[usize],
        capacity: usize,
        kept: usize,
        vector: &mut Vec<usize>,
        most: usize,
        found: &mut Vec<Vec<usize>>,
    ) {
        let Some((&count, rest)) = counts.split_first() else {
            if kept == 0 {
                found.push(vector.clone());
            }
            return;
        };
        let capacity = capacity - count;
        for number in kept.saturating_sub(capacity)..=count.min(kept) {
            if found.len() == most {
                return;
            }
            vector.push(number);
            extend(rest, capacity, kept - number, vector, most, found);
            vector.pop();
        }
    }
    let mut found = Vec::new();
    extend(counts, counts.iter().sum(), kept, &mut Vec::new(), most, &mut found);
    found
}

/// Whether every pool of at most `budget` users fewer is above one of the joins; None if that takes long.
fn unavoidable(pool: &[usize], joins: &[Vec<usize>], budget: usize) -> Option<bool> {
    let mut work = MAX_WORK;
    let mut stack = vec![(pool.to_vec(), budget)];
    while let Some((left, users)) = stack.pop() {
        work = work.checked_sub(joins.len())?;
        let below = |join: &&Vec<usize>| left.iter().zip(*join).all(|(have, needed)| have >= needed);
        let Some(above) = joins.iter().find(below) else { return Some(false) };
        for (kind, (&have, &needed)) in left.iter().zip(above).enumerate() {
            if needed > 0 && have - needed < users {
                let mut fewer = left.clone();
                fewer[kind] = needed - 1;
                stack.push((fewer, users - (have - needed + 1)));
            }
        }
    }
    Some(true)
}

/// The rows of distributions that are answers must be as many as were asked for.
pub(super) fn check_rows(matrix: &PmfMatrix<'_>, missing: &[usize], rows: usize) -> Result<()> {
    if matrix.rows() != rows {
        return Err(Error::invalid(
            "matrix",
            format!("has {} rows where {rows} are asked for", matrix.rows()),
        ));
    }
    match missing.iter().find(|&&row| row >= rows) {
        Some(row) => Err(Error::invalid("incompatible", format!("row {row} is out of range"))),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "pools_tests.rs"]
mod tests;
