//! Exact, certified answers to privacy questions over finite output spaces.
//!
//! Floors, each importing only from those above it in this list:
//!
//! * ground: [`error`], [`memory`] (allocations that are refused and not fatal), [`control`] (cancel, progress), [`exact`] (integers, rationals, enclosures of e^x and ln x,
//!   privacy levels)
//! * 1: [`simd`] (numeric kernels), [`ct`] (constant-time primitives), [`pmf`] (validated finite distributions), [`rng`]
//!   (uniform random integers), [`public`] (random bits by address, from a published seed), [`subsets`] (subsets and
//!   count vectors by rank), [`reading`] (what cells of tables are read as, and cells of files)
//! * 2: [`composition`] (privacy loss distributions and their products, from both sides), [`divergence`] (hockey-stick and
//!   the rest, decided comparisons, e^epsilon at delta), [`sampler`] (certified
//!   distributions that are drawn from), [`correlated`] (draws by public randomness that agree where distributions overlap)
//! * 3: [`family`] (the worst of many listed pairs, and of all pairs), [`stability`] (which deletions make all that is
//!   left pairwise indistinguishable), [`score`] (integer scores of hypotheses that change by at most a known number when
//!   one user is replaced), [`dimension`] (VC and Littlestone dimensions of finite classes), [`keys`] (keys that vanish with
//!   their only user)
//! * 4: [`vectors`] (a vector for each user, and integer sums of them of known sensitivity), [`table`] (rows of users with
//!   keys, added up to a bounded integer vector for each user)
//! * 5: [`protocol`] (what users send when nobody is given their data, and what that protects)
//!
//! Every comparison that decides a privacy question is certified: float64 with a proven error radius first, exact
//! arithmetic where that cannot decide. Nothing here knows of Python.

pub mod composition;
pub mod control;
pub mod correlated;
pub mod ct;
pub mod dimension;
pub mod divergence;
pub mod error;
pub mod exact;
pub mod family;
pub mod keys;
pub mod memory;
pub mod pmf;
pub mod protocol;
pub mod public;
pub mod reading;
pub mod rng;
pub mod sampler;
pub mod score;
pub mod simd;
pub mod stability;
pub mod subsets;
pub mod table;
pub mod vectors;

pub use error::{Error, Result};
