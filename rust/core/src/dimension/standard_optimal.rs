//! The standard optimal algorithm: predict the label whose version space has the larger Littlestone dimension.
//!
//! Each of its mistakes lowers the dimension of the version space, so that it makes at most as many of them as the dimension
//! on labels of one concept; a version space of dimension 0 is one concept, which it then predicts everywhere.
//!
//! Paper: [GKM21, Theorem 17].

use super::{
    concepts::{Column, size},
    littlestone::VersionSpaces,
};
use crate::{Error, Result, control::Control};
use std::collections::{BTreeSet, HashSet};

/// What the algorithm predicts after a sample, at every column of the given matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prediction {
    /// One label for each column.
    pub labels: Vec<bool>,
    /// On how many examples of the sample the prediction before it was wrong.
    pub mistakes: usize,
}

fn check(columns: usize, sample: &[(usize, bool)]) -> Result<()> {
    match sample.iter().find(|(column, _)| *column >= columns) {
        Some((column, _)) => {
            Err(Error::invalid("points", format!("{column} is not one of the {columns} columns")))
        }
        None => Ok(()),
    }
}

impl VersionSpaces {
    /// The concepts of `set` that have this label in a column of the given matrix.
    fn restricted(&self, set: &[u64], column: usize, label: bool) -> Box<[u64]> {
        match self.concepts().columns()[column] {
            Column::Constant(constant) if constant == label => set.into(),
            Column::Constant(_) => vec![0; set.len()].into(),
            Column::Point { point, negated } => {
                let [zeros, ones] = self.concepts().split(set, point);
                if label == negated { zeros } else { ones }
            }
        }
    }

    /// The predictions of the algorithm on a nonempty version space: 1 where the concepts labeled 1 have the larger
    /// dimension.
    fn predicted(&mut self, set: &[u64], budget: u64, control: &Control) -> Result<Vec<bool>> {
        let mut leans = Vec::with_capacity(self.concepts().points());
        for point in 0..self.concepts().points() {
            control.check()?;
            let mut dimensions = [None; 2];
            for (label, part) in self.concepts().split(set, point).iter().enumerate() {
                if size(part) > 0 {
                    dimensions[label] = Some(self.dimension(part, budget, control)?);
                }
            }
            leans.push(dimensions[1].cmp(&dimensions[0]));
        }
        let label = |column: &Column| match *column {
            Column::Constant(constant) => constant,
            // A tie is labeled 0 in the column as given.
            Column::Point { point, negated: false } => leans[point].is_gt(),
            Column::Point { point, negated: true } => leans[point].is_lt(),
        };
        Ok(self.concepts().columns().iter().map(label).collect())
    }

    /// Runs the standard optimal algorithm through a sample of (column, label).
    ///
    /// An example that no concept of the version space explains leaves the last predictions as they are but for its own
    /// column, from then on to the end.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a column that the matrix does not have, [`Error::Canceled`], and
    /// [`Error::TooLarge`] when a dimension that is asked for on the way takes more than `budget` version spaces.
    pub fn standard_optimal(
        &mut self,
        sample: &[(usize, bool)],
        budget: u64,
        control: &Control,
    ) -> Result<Prediction> {
        check(self.concepts().columns().len(), sample)?;
        let mut set = self.concepts().all();
        let mut labels = self.predicted(&set, budget, control)?;
        let mut mistakes = 0;
        let mut explained = true;
        for &(column, label) in sample {
            mistakes += usize::from(labels[column] != label);
            if explained {
                let rest = self.restricted(&set, column, label);
                explained = size(&rest) > 0;
                if explained && rest != set {
                    labels = self.predicted(&rest, budget, control)?;
                    set = rest;
                }
            }
            if !explained {
                labels[column] = label;
            }
        }
        Ok(Prediction { labels, mistakes })
    }

    /// What the algorithm may predict at the end for a concept that explains a sample: the predictions on the version
    /// space of the sample, and on every one that is reached from it by mistakes of the algorithm. In lexicographic
    /// order, without repetition; empty when no concept explains the sample.
    ///
    /// # Errors
    /// As of [`Self::standard_optimal`].
    pub fn explanations(
        &mut self,
        sample: &[(usize, bool)],
        budget: u64,
        control: &Control,
    ) -> Result<Vec<Vec<bool>>> {
        check(self.concepts().columns().len(), sample)?;
        let mut set = self.concepts().all();
        for &(column, label) in sample {
            set = self.restricted(&set, column, label);
        }
        if size(&set) == 0 {
            return Ok(Vec::new());
        }
        // A tie is a mistake at a point or at its negation, so that both count.
        let columns = self.concepts().distinct_columns();
        let mut found = BTreeSet::new();
        let mut seen = HashSet::from([set.clone()]);
        let mut open = vec![set];
        while let Some(set) = open.pop() {
            control.advance(1)?;
            let labels = self.predicted(&set, budget, control)?;
            for &column in &columns {
                let rest = self.restricted(&set, column, !labels[column]);
                if size(&rest) > 0 && seen.insert(rest.clone()) {
                    open.push(rest);
                }
            }
            found.insert(labels);
        }
        Ok(found.into_iter().collect())
    }
}
