//! Shattered sets, and the most patterns that a number of points can show.
//!
//! A set of points splits the concepts into cells, one for each pattern that occurs on it.
//!
//! Paper: [LWY24, Definition A.1].

use super::concepts::{Concepts, common, size};
use crate::{Error, Result, control::Control};
use std::cmp::Reverse;

type Cells = Vec<Box<[u64]>>;

/// A walk over sets of points, each extended by later points only.
struct Walk<'a> {
    concepts: &'a Concepts,
    left: u64,
    /// The most cells so far.
    most: usize,
    control: &'a Control,
}

impl Walk<'_> {
    /// Counts one set; false when the budget is used up.
    fn step(&mut self) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        self.control.advance(1)?;
        Ok(true)
    }

    fn cut(&self, cells: &Cells, point: usize) -> Cells {
        let parts = cells.iter().flat_map(|cell| self.concepts.split(cell, point));
        parts.filter(|part| size(part) > 0).collect()
    }

    /// Extends a shattered set by `more` of the points: Some(true) when that works, None when the budget is used up.
    fn shatter(
        &mut self,
        cells: &Cells,
        points: &[usize],
        more: u32,
        chosen: &mut Vec<usize>,
    ) -> Result<Option<bool>> {
        if more == 0 {
            return Ok(Some(true));
        }
        if !self.step()? {
            return Ok(None);
        }
        // Every cell must still show all patterns of the points to come; sets of shattered points are shattered, so a
        // point that fails here fails for all larger sets.
        let least = 1 << (more - 1);
        let open: Vec<usize> = points
            .iter()
            .copied()
            .filter(|&point| {
                cells.iter().all(|cell| {
                    let ones = common(cell, self.concepts.ones(point));
                    ones >= least && size(cell) - ones >= least
                })
            })
            .collect();
        for (index, &point) in open.iter().enumerate() {
            if open.len() - index < more as usize {
                break;
            }
            chosen.push(point);
            let cells = self.cut(cells, point);
            match self.shatter(&cells, &open[index + 1..], more - 1, chosen)? {
                Some(false) => {}
                decided => return Ok(decided),
            }
            chosen.pop();
        }
        Ok(Some(false))
    }

    /// Looks for more cells by `more` further points; false when the budget is used up.
    fn look_for_cells(&mut self, cells: &Cells, points: &[usize], more: usize) -> Result<bool> {
        if !self.step()? {
            return Ok(false);
        }
        self.most = self.most.max(cells.len());
        let patterns = |more: usize| {
            u32::try_from(more).ok().and_then(|more| 1_usize.checked_shl(more)).unwrap_or(usize::MAX)
        };
        let sizes: Vec<usize> = cells.iter().map(|cell| size(cell)).collect();
        if more == 0 || sizes.iter().map(|&size| size.min(patterns(more))).sum::<usize>() <= self.most {
            return Ok(true);
        }
        // What a point makes of the cells is only counted: to keep the cells of all points would fill the memory.
        let mut branches = Vec::new();
        for &point in points {
            let (mut split, mut ceiling) = (0, 0);
            for (cell, &size) in cells.iter().zip(&sizes) {
                let ones = common(cell, self.concepts.ones(point));
                split += usize::from(ones > 0 && ones < size);
                ceiling += ones.min(patterns(more - 1)) + (size - ones).min(patterns(more - 1));
            }
            if split > 0 {
                branches.push((split, ceiling, point));
            }
        }
        // Promising points first: they raise `most`, which closes the rest. A branch may use the points that come after
        // its own in this order, so that each set is met once.
        branches.sort_by_key(|&(split, ..)| Reverse(split));
        let order: Vec<usize> = branches.iter().map(|&(.., point)| point).collect();
        for (rank, &(_, ceiling, point)) in branches.iter().enumerate() {
            if ceiling > self.most
                && !self.look_for_cells(&self.cut(cells, point), &order[rank + 1..], more - 1)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn too_many(what: &str, lower: usize, upper: usize, budget: u64) -> Error {
    Error::too_large(format!(
        "{what} is between {lower} and {upper} (both proved), and {budget} sets of points did not suffice to decide it; \
         raise budget=, or go on with the bounds"
    ))
}

fn walk<'a>(concepts: &'a Concepts, budget: u64, control: &'a Control) -> Walk<'a> {
    control.set_total(usize::try_from(budget).unwrap_or(usize::MAX));
    Walk { concepts, left: budget, most: 1, control }
}

/// Columns of the given matrix that form a largest shattered set: its size is the VC dimension.
///
/// # Errors
/// [`Error::TooLarge`] when more than `budget` sets would have to be looked at; the message has the bounds that are proved
/// by then. [`Error::Canceled`].
pub fn shattered(concepts: &Concepts, budget: u64, control: &Control) -> Result<Vec<usize>> {
    let mut walk = walk(concepts, budget, control);
    let points: Vec<usize> = (0..concepts.points()).collect();
    let ceiling = concepts.concepts().ilog2();
    let mut largest = Vec::new();
    for more in 1..=ceiling {
        let mut chosen = Vec::new();
        match walk.shatter(&vec![concepts.all()], &points, more, &mut chosen)? {
            Some(true) => largest = chosen,
            Some(false) => break,
            None => return Err(too_many("the VC dimension", largest.len(), ceiling as usize, budget)),
        }
    }
    let mut columns: Vec<usize> = largest.into_iter().map(|point| concepts.column_of(point)).collect();
    columns.sort_unstable();
    Ok(columns)
}

/// The growth function: the most patterns that the concepts show on any k points.
///
/// # Errors
/// As of [`shattered`].
pub fn growth(concepts: &Concepts, k: usize, budget: u64, control: &Control) -> Result<usize> {
    let mut walk = walk(concepts, budget, control);
    let points: Vec<usize> = (0..concepts.points()).collect();
    if k >= points.len() {
        return Ok(concepts.concepts());
    }
    let patterns = 1_usize.checked_shl(u32::try_from(k).unwrap_or(u32::MAX)).unwrap_or(usize::MAX);
    let ceiling = concepts.concepts().min(patterns);
    if walk.look_for_cells(&vec![concepts.all()], &points, k)? || walk.most == ceiling {
        Ok(walk.most)
    } else {
        Err(too_many("the growth function", walk.most, ceiling, budget))
    }
}
