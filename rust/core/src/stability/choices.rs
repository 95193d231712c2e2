//! The ways to choose the types that stay, one at a time.

use crate::{Result, control::Control};

/// The ways to keep a number of types, in the order of the users that they drop, then of the types dropped.
///
/// Types are given by their place in the order of their sizes. Of two choices that drop as many users, the one that
/// drops the first type in which they differ comes first. Choices known to fail are left out.
#[derive(Debug)]
pub(super) struct Choices {
    /// Users of each type, ascending.
    sizes: Vec<usize>,
    /// Users of the smallest 0, 1, ... types.
    prefix: Vec<usize>,
    kept: usize,
    /// Types before this place are dropped by some choice.
    droppable: usize,
    /// By the last of them, the places that no choice keeps all of.
    failures: Vec<Vec<Vec<usize>>>,
    over: bool,
    /// Places of the types kept so far, one fewer than there are frames.
    places: Vec<usize>,
    in_places: Vec<bool>,
    frames: Vec<Frame>,
}

/// The types that may be kept next: those from `low` to `next` - 1, the last first.
#[derive(Debug)]
struct Frame {
    low: usize,
    next: usize,
    /// Users of the types that are yet to be kept.
    users: usize,
}

impl Choices {
    /// The choices of `kept` >= 1 types, of these ascending sizes, that drop at most `bound` users.
    pub(super) fn new(sizes: Vec<usize>, kept: usize, bound: usize) -> Self {
        let mut prefix = vec![0];
        for &size in &sizes {
            prefix.push(prefix[prefix.len() - 1] + size);
        }
        let dropped = sizes.len().saturating_sub(kept);
        // A type is dropped with the dropped - 1 smallest of the others, or never.
        let least = prefix[dropped.saturating_sub(1)];
        let fits = |&size: &usize| bound.checked_sub(least).is_some_and(|most| size <= most);
        Self {
            droppable: if dropped == 0 { 0 } else { sizes.partition_point(fits) },
            over: dropped > 0 && prefix[dropped] > bound,
            failures: vec![Vec::new(); sizes.len()],
            in_places: vec![false; sizes.len()],
            places: Vec::new(),
            frames: Vec::new(),
            kept,
            prefix,
            sizes,
        }
    }

    /// The types to choose from.
    pub(super) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// No choice that keeps all of these types from now on.
    pub(super) fn exclude(&mut self, places: &[usize]) {
        let often: Vec<usize> = places.iter().copied().filter(|&place| self.droppable(place)).collect();
        match often.iter().max() {
            Some(&last) => self.failures[last].push(often),
            None => self.over = true, // they are in every choice
        }
    }

    /// False for a type of so many users that every choice keeps it.
    pub(super) fn droppable(&self, place: usize) -> bool {
        place < self.droppable
    }

    /// Begins with the choices that drop this many users.
    pub(super) fn begin(&mut self, dropped: usize) {
        self.places.clear();
        self.in_places.fill(false);
        self.frames.clear();
        let all = self.prefix[self.sizes.len()];
        if let (Some(users), 1..) = (all.checked_sub(dropped), self.kept) {
            self.frames.extend(self.frame(0, users));
        }
    }

    /// The next of them, as the places of the types that it keeps.
    ///
    /// # Errors
    /// [`crate::Error::Canceled`].
    pub(super) fn next(&mut self, control: &Control) -> Result<Option<Vec<usize>>> {
        while let Some(frame) = self.frames.last_mut() {
            control.check()?;
            if self.over {
                return Ok(None);
            }
            if frame.next == frame.low {
                self.frames.pop();
                if let Some(place) = self.places.pop() {
                    self.in_places[place] = false;
                }
                continue;
            }
            frame.next -= 1;
            let (place, users) = (frame.next, frame.users);
            if self.fails_with(place) {
                continue;
            }
            let left = users.saturating_sub(self.sizes[place]);
            self.places.push(place);
            if self.places.len() < self.kept {
                self.in_places[place] = true;
                match self.frame(place + 1, left) {
                    Some(frame) => self.frames.push(frame),
                    None => self.in_places[self.places.pop().unwrap_or(place)] = false,
                }
                continue;
            }
            let found = self.places.clone();
            self.places.pop();
            if left == 0 {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Whether a failure is all kept with this type.
    fn fails_with(&self, place: usize) -> bool {
        let kept = |&other: &usize| other == place || self.in_places[other];
        self.failures[place].iter().any(|failure| failure.iter().all(kept))
    }

    /// What may come next, of types from `start` on, when those yet to be kept have this many users.
    fn frame(&self, start: usize, users: usize) -> Option<Frame> {
        let missing = self.kept - self.places.len();
        let last = self.sizes.len().checked_sub(missing)?;
        // One that large with the smallest after it is too much; one that small with the largest of all too little.
        let others = self.prefix[self.sizes.len()] - self.prefix[last + 1];
        let low = self.sizes[..=last].partition_point(|&size| size < users.saturating_sub(others)).max(start);
        let mut next = start;
        let mut end = last + 1;
        while next < end {
            let middle = usize::midpoint(next, end);
            if self.prefix[middle + missing] - self.prefix[middle] <= users {
                next = middle + 1;
            } else {
                end = middle;
            }
        }
        Some(Frame { low, next: next.max(low), users })
    }
}

#[cfg(test)]
#[path = "choices_tests.rs"]
mod tests;
