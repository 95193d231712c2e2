//! Tables of rows (user, key, integers) added up to one bounded integer vector for each user, and summed over users.
//!
//! A row belongs to a user and to a key and has some integers. [`sums::TableSums`] takes rows in batches, adds up those
//! of the same user and key to a [`cells`] (a number of rows and sums), and then, for one user after the other, makes
//! the integers that the user adds to each key. These per-user integers are where the bounds are: at most so many keys,
//! and in every column a range that is enforced last, in integers.
//!
//! # Why replacing a user changes sums by a known number
//! * A user's integers are a function of the multiset of that user's rows, of public numbers, and of the coins below. No
//!   other user's rows enter, nor the order of rows, the batches, the parts that rows are kept in, nor the threads.
//! * Users are told apart by exact codes ([`index::TableIndex`]), never by hashes: two people who shared a hash would be
//!   one user with the rows of both, and then removing one would replace the vector of the other.
//! * Which keys a user keeps ([`choice`]) is decided by a keyed hash of the user's value and of the key's value, or by the
//!   order of keys' values: never by codes, which depend on who came first. For every value of the hash's key the bound
//!   on the number of keys holds, so privacy does not rest on the secrecy of that key.
//! * Within a user, rows are counted in 64 bits and added up in 128, where 2^63 rows of any 64-bit integers have room.
//!   Nothing saturates before a user's rows are all there, as a saturated part of a sum would depend on the parts.
//! * Sums over users are exact in 64 bits where the number of users and the column's public range show that they fit,
//!   and in 128 bits otherwise. Only the final sum is clamped to 64 bits. As a clamp moves no two integers apart, the
//!   clamped sums differ by at most what the sums differ by, in every entry. To refuse a sum that does not fit would be
//!   an output that depends on data; to refuse by a public bound would forbid columns that are wide and nearly empty.
//!
//! Time and memory depend on the rows, and none of this is constant-time.

pub mod cells;
pub mod choice;
pub mod columns;
pub mod index;
mod partition;
pub mod patterns;
mod rows;
mod spill;
pub mod sums;
mod totals;
pub mod walk;

/// Rows are kept in so many parts, by the lowest bits of their user's code: a user is in one of them.
const PARTS: usize = 1 << PART_BITS;
const PART_BITS: u32 = 8;

/// The rank of keys whose rows are left out: those that a public list does not have, or that are released already.
pub const SKIPPED: u32 = u32::MAX;
