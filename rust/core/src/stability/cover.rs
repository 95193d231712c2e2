//! Stability where one user is kept, of more than a grid of all sets can hold: smallest vertex covers.
//!
//! A set of users is stable exactly when it meets every pair of users who are incompatible as the one that is kept, and
//! holds all on whom the algorithm fails. Proof: `docs/proofs/delstab_paper.md`, "Choices".

use super::draws::lowest_terms;
use crate::{
    Error, Result,
    control::Control,
    divergence::is_indistinguishable,
    exact::{Level, Natural, Rational},
    pmf::Pmf,
};
use std::collections::HashMap;

/// Users are the bits of one number.
const MAX_USERS: usize = 128;

/// The users that a smallest stable set leaves, of one pmf each (None where the algorithm fails); None when it has more
/// than `limit` users.
///
/// # Errors
/// [`Error::TooLarge`] for more than 128 users; [`Error::InvalidArgument`] for pmfs of different lengths;
/// [`Error::Canceled`].
pub fn outside_smallest_cover(
    pmfs: &[Option<Pmf<'_>>],
    level: &Level,
    delta: &Rational,
    limit: usize,
    control: &Control,
) -> Result<Option<Vec<usize>>> {
    if pmfs.len() > MAX_USERS {
        return Err(Error::too_large(format!("{} users where {MAX_USERS} are possible", pmfs.len())));
    }
    let apart = incompatible(pmfs, level, delta, control)?;
    let cover = Search { apart: &apart, control, steps: 0 }.smallest(limit)?;
    Ok(cover.map(|cover| (0..pmfs.len()).filter(|&user| cover >> user & 1 == 0).collect()))
}

/// For every user those who are incompatible; users of equal pmfs are compared once.
fn incompatible(
    pmfs: &[Option<Pmf<'_>>],
    level: &Level,
    delta: &Rational,
    control: &Control,
) -> Result<Vec<u128>> {
    let mut apart = vec![0_u128; pmfs.len()];
    let mut place_of: HashMap<Vec<Natural>, usize> = HashMap::new();
    let mut groups: Vec<(&Pmf<'_>, u128)> = Vec::new();
    for (user, pmf) in pmfs.iter().enumerate() {
        let Some(pmf) = pmf else {
            apart[user] = 1 << user;
            continue;
        };
        let place = *place_of.entry(lowest_terms(pmf, control)?).or_insert(groups.len());
        if place == groups.len() {
            groups.push((pmf, 0));
        }
        groups[place].1 |= 1 << user;
    }
    for (place, &(first, users)) in groups.iter().enumerate() {
        // With itself too: a declared error of the masses may leave even equal ones apart.
        for &(second, others) in &groups[place..] {
            if !is_indistinguishable(first, second, level, delta, control)?.holds {
                for (user, edges) in apart.iter_mut().enumerate() {
                    *edges |= if users >> user & 1 == 1 { others } else { 0 };
                    *edges |= if others >> user & 1 == 1 { users } else { 0 };
                }
            }
        }
    }
    Ok(apart)
}

/// The search for a smallest cover of a graph.
struct Search<'a> {
    /// For every vertex the bits of its neighbors; a vertex beside itself is in every cover.
    apart: &'a [u128],
    control: &'a Control,
    /// How many calls of [`Search::cover`] there were.
    steps: usize,
}

impl Search<'_> {
    /// A smallest set of at most `limit` vertices that meets every edge, as bits.
    fn smallest(&mut self, limit: usize) -> Result<Option<u128>> {
        let all = (0..self.apart.len()).fold(0, |all, vertex| all | 1 << vertex);
        let loops = self
            .apart
            .iter()
            .enumerate()
            .fold(0, |loops, (vertex, others)| loops | (others & (1_u128 << vertex)));
        let Some(most) = limit.checked_sub(loops.count_ones() as usize) else { return Ok(None) };
        for room in 0..=most.min(self.apart.len()) {
            if let Some(cover) = self.cover(all & !loops, room.cast_signed())? {
                return Ok(Some(cover | loops));
            }
        }
        Ok(None)
    }

    /// A cover, of at most `room` vertices, of the edges within `alive`.
    fn cover(&mut self, mut alive: u128, mut room: isize) -> Result<Option<u128>> {
        self.control.check()?;
        self.steps += 1;
        let mut cover = 0;
        let (vertex, others) = loop {
            let Degrees { sum, most, largest, one } = self.degrees(alive);
            if most == 0 {
                return Ok((room >= 0).then_some(cover));
            }
            if sum > 2 * most * room {
                return Ok(None);
            }
            let taken = match one {
                Some(one) => self.apart[one] & alive, // as good as the vertex itself
                None if most == 2 => 1 << largest,    // in a circle all vertices are equal
                None => break (1 << largest, self.apart[largest] & alive),
            };
            (cover, alive, room) = (cover | taken, alive & !taken, room - 1);
        };
        for taken in [vertex, others] {
            let left = room - (taken.count_ones() as usize).cast_signed();
            if let Some(members) = self.cover(alive & !taken, left)? {
                return Ok(Some(cover | taken | members));
            }
        }
        Ok(None)
    }

    fn degrees(&self, alive: u128) -> Degrees {
        let mut found = Degrees { sum: 0, most: 0, largest: 0, one: None };
        let mut rest = alive;
        while rest != 0 {
            let vertex = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let degree = ((self.apart[vertex] & alive).count_ones() as usize).cast_signed();
            found.sum += degree;
            if degree > found.most {
                (found.most, found.largest) = (degree, vertex);
            }
            if degree == 1 && found.one.is_none() {
                found.one = Some(vertex);
            }
        }
        found
    }
}

/// How many neighbors the vertices have.
struct Degrees {
    sum: isize,
    most: isize,
    /// The first vertex with the most neighbors.
    largest: usize,
    /// The first vertex with one neighbor.
    one: Option<usize>,
}

#[cfg(test)]
#[path = "cover_tests.rs"]
mod tests;
