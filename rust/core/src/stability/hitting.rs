//! Smallest sets of users that meet every edge.
//!
//! A set of users is stable exactly when it meets the union of the kept sets of every bad pair, so that r* is the size
//! of a minimum hitting set. It needs no grid: it serves labelled users where all sets of them are too many.

use crate::{Result, control::Control};
use std::collections::HashMap;

/// A set of users, 64 to a word.
type Users = Vec<u64>;

/// Steps between two looks at the control.
const CHECK_EVERY: usize = 1 << 6;

fn size(users: &[u64]) -> u32 {
    users.iter().map(|word| word.count_ones()).sum()
}

fn meets(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

fn is_subset(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a & !b == 0)
}

fn intersection(a: &[u64], b: &[u64]) -> Users {
    a.iter().zip(b).map(|(a, b)| a & b).collect()
}

fn members(users: &[u64]) -> impl Iterator<Item = usize> {
    let word = |(index, &word): (usize, &u64)| {
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * index + bit)
    };
    users.iter().enumerate().flat_map(word)
}

fn contains(users: &[u64], user: usize) -> bool {
    users[user / 64] >> (user % 64) & 1 == 1
}

/// The inclusion-minimal edges, smallest first.
fn minimal(mut edges: Vec<Users>, control: &Control) -> Result<Vec<Users>> {
    edges.sort_unstable_by(|a, b| size(a).cmp(&size(b)).then_with(|| a.cmp(b)));
    edges.dedup();
    let mut kept: Vec<Users> = Vec::new();
    for (index, edge) in edges.into_iter().enumerate() {
        if index % CHECK_EVERY == 0 {
            control.check()?;
        }
        if !kept.iter().any(|smaller| is_subset(smaller, &edge)) {
            kept.push(edge);
        }
    }
    Ok(kept)
}

/// Users of whom no other meets all the edges that they meet, one of those who meet the same edges.
fn useful(edges: &[Users], words: usize, control: &Control) -> Result<Users> {
    let mut met: HashMap<usize, Users> = HashMap::new();
    for (index, edge) in edges.iter().enumerate() {
        for user in members(edge) {
            met.entry(user).or_insert_with(|| vec![0; edges.len().div_ceil(64)])[index / 64] |=
                1 << (index % 64);
        }
    }
    let mut users: Vec<(usize, Users)> = met.into_iter().collect();
    users.sort_unstable_by(|(a, met_a), (b, met_b)| size(met_b).cmp(&size(met_a)).then(a.cmp(b)));
    let mut kept: Vec<(usize, Users)> = Vec::new();
    for (user, met) in users {
        control.check()?;
        if !kept.iter().any(|(_, more)| is_subset(&met, more)) {
            kept.push((user, met));
        }
    }
    let mut chosen = vec![0; words];
    for (user, _) in kept {
        chosen[user / 64] |= 1 << (user % 64);
    }
    Ok(chosen)
}

/// A smallest set of at most `limit` users that meets every edge, in increasing order, or None.
///
/// Edges are sets of users as bits of 64-bit words. The search branches on the users of a smallest edge; its time grows
/// exponentially with the answer in the worst case, and it can be cancelled.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn minimum_hitting_set(edges: &[Users], limit: usize, control: &Control) -> Result<Option<Vec<usize>>> {
    let words = edges.iter().map(Vec::len).max().unwrap_or(0);
    let padded =
        edges.iter().map(|edge| edge.iter().copied().chain(std::iter::repeat(0)).take(words).collect());
    let edges = minimal(padded.collect(), control)?;
    if edges.iter().any(|edge| size(edge) == 0) {
        return Ok(None);
    }
    let useful = useful(&edges, words, control)?;
    let edges = minimal(edges.iter().map(|edge| intersection(edge, &useful)).collect(), control)?;
    let unmet: Vec<&Users> = edges.iter().collect();
    for room in disjoint(&unmet, &useful)..=limit {
        let mut search = Search { allowed: useful.clone(), chosen: Vec::new(), control };
        if search.extend(&unmet, room)? {
            search.chosen.sort_unstable();
            return Ok(Some(search.chosen));
        }
    }
    Ok(None)
}

/// A number of edges that no two share an allowed user: so many users are needed.
fn disjoint(edges: &[&Users], allowed: &[u64]) -> usize {
    let mut free = allowed.to_vec();
    let mut count = 0;
    for edge in edges {
        let open = intersection(edge, allowed);
        if is_subset(&open, &free) {
            free.iter_mut().zip(&open).for_each(|(free, open)| *free &= !open);
            count += 1;
        }
    }
    count
}

struct Search<'a> {
    /// Users that may still be chosen: branches to the left have tried the others.
    allowed: Users,
    chosen: Vec<usize>,
    control: &'a Control,
}

impl Search<'_> {
    /// Chooses at most `room` more users that meet all edges, if that can be.
    fn extend(&mut self, unmet: &[&Users], room: usize) -> Result<bool> {
        self.control.check()?;
        let open = |edge: &&&Users| size(&intersection(edge, &self.allowed));
        let Some(smallest) = unmet.iter().min_by_key(open) else { return Ok(true) };
        if !meets(smallest, &self.allowed) || disjoint(unmet, &self.allowed) > room {
            return Ok(false);
        }
        let met = |user: usize| unmet.iter().filter(|edge| contains(edge, user)).count();
        let mut users: Vec<usize> = members(&intersection(smallest, &self.allowed)).collect();
        users.sort_by_cached_key(|&user| std::cmp::Reverse(met(user)));
        let before = self.allowed.clone();
        for user in users {
            let rest: Vec<&Users> = unmet.iter().copied().filter(|edge| !contains(edge, user)).collect();
            self.chosen.push(user);
            if self.extend(&rest, room - 1)? {
                return Ok(true);
            }
            self.chosen.pop();
            self.allowed[user / 64] &= !(1 << (user % 64));
        }
        self.allowed = before;
        Ok(false)
    }
}
