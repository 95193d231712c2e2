//! Which rows each user has.

use crate::{
    Error, Result,
    control::Control,
    memory::{copied, room, zeros},
};

/// Rows between two looks at the control.
const CHECK_EVERY: usize = 1 << 16;

/// The rows of every user, in the order in which they were given.
#[derive(Debug, Clone)]
pub struct RowsOfUsers {
    /// User i has the places `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
    /// Which row is at a place; none where rows come user after user, and every row is at its own place.
    rows: Option<Vec<u32>>,
}

/// The rows of one user.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// So many from the first on.
    Run(usize, usize),
    /// These.
    Listed(&'a [u32]),
}

impl Rows<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Run(_, len) => *len,
            Self::Listed(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    pub fn get(&self, index: usize) -> usize {
        match self {
            Self::Run(first, _) => first + index,
            Self::Listed(rows) => rows[index] as usize,
        }
    }
}

impl RowsOfUsers {
    /// From the user of every row, in `0..users`.
    ///
    /// # Errors
    /// For codes out of range, [`Error::TooLarge`] for 2^32 rows and more, [`Error::Canceled`].
    pub fn new(user_of_row: &[u32], users: usize, control: &Control) -> Result<Self> {
        if u32::try_from(user_of_row.len()).is_err() {
            let rows = user_of_row.len();
            return Err(Error::too_large(format!("{rows} rows are too many; at most 2^32 - 1 are taken")));
        }
        let mut starts: Vec<usize> =
            zeros("n_users", users.saturating_add(1), "number the users without gaps")?;
        for codes in user_of_row.chunks(CHECK_EVERY) {
            control.check()?;
            for &user in codes {
                match starts.get_mut(user as usize + 1) {
                    Some(start) => *start += 1,
                    None => return Err(Error::invalid("users", format!("a code is not below {users}"))),
                }
            }
        }
        for user in 0..users {
            starts[user + 1] += starts[user];
        }
        if user_of_row.is_sorted() {
            return Ok(Self { starts, rows: None });
        }
        let mut rows = room("users", user_of_row.len())?;
        rows.resize(user_of_row.len(), 0);
        let mut next = copied("n_users", &starts)?;
        for (row, &user) in (0_u32..).zip(user_of_row) {
            if (row as usize).is_multiple_of(CHECK_EVERY) {
                control.check()?;
            }
            let place = &mut next[user as usize];
            rows[*place] = row;
            *place += 1;
        }
        Ok(Self { starts, rows: Some(rows) })
    }

    /// The number of users.
    pub fn users(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.starts[self.users()]
    }

    /// The row at a place, where rows are user after user.
    pub fn at(&self, place: usize) -> usize {
        self.rows.as_ref().map_or(place, |rows| rows[place] as usize)
    }

    /// Where the places of each user start, and where those of the last end.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The rows of a user.
    pub fn of(&self, user: usize) -> Rows<'_> {
        let (first, end) = (self.starts[user], self.starts[user + 1]);
        match &self.rows {
            None => Rows::Run(first, end - first),
            Some(rows) => Rows::Listed(&rows[first..end]),
        }
    }
}
