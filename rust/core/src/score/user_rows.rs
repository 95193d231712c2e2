//! Who has which rows: at most m each, user after user.

use crate::{
    Error, Result,
    memory::{copied, room, zeros},
};
use std::ops::Range;

/// The rows of every user: which point each is about.
#[derive(Debug, Clone)]
pub struct UserRows {
    /// User i has the places `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
    points: Vec<u32>,
    /// Which row is at a place.
    rows: Vec<usize>,
    /// The most rows of a user.
    m: u32,
}

impl UserRows {
    /// From the point and the user of every row, users in `0..users`, each with at most m rows.
    ///
    /// # Errors
    /// For lists of different lengths, codes out of range, m = 0 and users with more than m rows.
    pub fn new(point_of_row: &[u32], user_of_row: &[u32], users: usize, m: u32) -> Result<Self> {
        if point_of_row.len() != user_of_row.len() {
            return Err(Error::invalid("users", "as many are needed as there are rows"));
        }
        if m == 0 {
            return Err(Error::invalid("m", "0 is out of range; at least 1 is needed"));
        }
        let mut starts: Vec<usize> =
            zeros("n_users", users.saturating_add(1), "number the users without gaps")?;
        for &user in user_of_row {
            match starts.get_mut(user as usize + 1) {
                Some(start) => *start += 1,
                None => return Err(Error::invalid("users", format!("a code is not below {users}"))),
            }
        }
        if starts.iter().any(|&rows| rows > m as usize) {
            return Err(Error::invalid("users", format!("a user has more than m = {m} rows")));
        }
        for user in 0..users {
            starts[user + 1] += starts[user];
        }
        let (mut points, mut rows) = (copied("points", point_of_row)?, room("points", point_of_row.len())?);
        rows.resize(point_of_row.len(), 0);
        let mut next = copied("n_users", &starts)?;
        for (row, (&point, &user)) in point_of_row.iter().zip(user_of_row).enumerate() {
            let place = &mut next[user as usize];
            (points[*place], rows[*place]) = (point, row);
            *place += 1;
        }
        Ok(Self { starts, points, rows, m })
    }

    /// The number of users.
    pub fn users(&self) -> usize {
        self.starts.len() - 1
    }

    /// The most rows of a user.
    pub fn most_rows(&self) -> u32 {
        self.m
    }

    /// The points of all users' rows, user after user.
    pub(super) fn points(&self) -> &[u32] {
        &self.points
    }

    pub(super) fn places(&self, user: usize) -> Range<usize> {
        self.starts[user]..self.starts[user + 1]
    }

    /// Numbers of rows in the order of `UserRows::points`.
    ///
    /// # Errors
    /// When there are more or less labels than rows, or labels other than 0 and 1.
    pub fn ordered(&self, labels: &[u8]) -> Result<Vec<u8>> {
        if labels.len() != self.rows.len() {
            return Err(Error::invalid("labels", "as many are needed as there are rows"));
        }
        if labels.iter().any(|&label| label > 1) {
            return Err(Error::invalid("labels", "only 0 and 1 are accepted"));
        }
        Ok(self.rows.iter().map(|&row| labels[row]).collect())
    }
}
