//! The shared exponential race: the item x with the largest ln P(x) - ln E(x), for exponential variables E(x) that all
//! users share.

use super::logarithm;
use crate::{Error, Result, control::Control, public::PublicSeed, simd::Kernel};
use rayon::prelude::*;

/// Words made and used at a time: they stay in the nearest cache.
const CHUNK: usize = 1 << 10;
/// Items of one task: fewer are the caller's own work.
const TASK: usize = 1 << 16;
/// The most keys of one list.
const MOST_KEYS: usize = 1 << 30;

/// The keys -ln E(x), x = 0, ..., count - 1, of the race at an address.
///
/// # Errors
/// [`Error::TooLarge`] beyond 2^30 keys; [`Error::Cancelled`].
pub fn keys(seed: &PublicSeed, label: &str, i: u64, count: usize, control: &Control) -> Result<Vec<f64>> {
    if count > MOST_KEYS {
        return Err(Error::too_large(format!(
            "{count} keys are more than the 2^30 that one list may have; a sampler needs no list of them"
        )));
    }
    let mut keys = vec![0.0; count];
    keys.par_chunks_mut(TASK).enumerate().try_for_each(|(task, keys)| {
        each_chunk(seed, label, i, task * TASK, keys.len(), control, |place, chunk| {
            keys[place..][..chunk.len()].copy_from_slice(chunk);
        })
    })?;
    Ok(keys)
}

/// Makes the keys from `first` on, a chunk at a time: `consume(place, keys)`, where place 0 is `first`.
fn each_chunk(
    seed: &PublicSeed,
    label: &str,
    i: u64,
    first: usize,
    count: usize,
    control: &Control,
    mut consume: impl FnMut(usize, &mut [f64]),
) -> Result<()> {
    let mut source = seed.words(label, i);
    let (mut bytes, mut words, mut keys) = ([0; 8 * CHUNK], [0; CHUNK], [0.0; CHUNK]);
    for place in (0..count).step_by(CHUNK) {
        control.check()?;
        let size = CHUNK.min(count - place);
        let keys = &mut keys[..size];
        source.read((first + place) as u64, &mut bytes[..8 * size], &mut words[..size]);
        logarithm::keys(Kernel::detect(), &words[..size], keys);
        consume(place, keys);
    }
    Ok(())
}
