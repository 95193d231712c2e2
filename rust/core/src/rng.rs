//! Uniform random integers: from the operating system, or from a seed for tests.

use crate::{
    Error, Result,
    control::Control,
    ct::Secret,
    exact::Natural,
    simd::keystream::{WIDE_BYTES, fill_wide},
};
use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use num_traits::{ToPrimitive, Zero};
use std::{collections::BTreeSet, fmt};
use zeroize::Zeroize;

/// Requests for more bytes than this get the stream of a fresh key; shorter ones the system's own bytes.
const DIRECT_BYTES: usize = 256;

/// The most elements of a random subset.
pub const MOST_CHOSEN: usize = 1 << 24;

/// Where random bits come from. Every draw is exactly uniform when the bits are.
pub struct Source(Kind);

enum Kind {
    /// The operating system, asked at every draw. Nothing is kept in the process, so that forked and copied processes
    /// never share noise.
    System,
    /// The `ChaCha20` stream of a key, which is wiped with it; for tests.
    Seeded(Box<ChaCha20Rng>),
    /// Bytes given beforehand, and how many of them are used; for tests.
    Listed(Secret<Vec<u8>>, usize),
}

impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Kind::System => "Source::system()",
            Kind::Seeded(_) => "Source::seeded(..)",
            Kind::Listed(..) => "Source::listed(..)",
        })
    }
}

impl Source {
    /// The operating system's cryptographic generator.
    pub fn system() -> Self {
        Self(Kind::System)
    }

    /// The `ChaCha20` stream with this key (little endian): reproducible, so for tests and never for releases.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a seed of more than 256 bits.
    pub fn seeded(seed: &Natural) -> Result<Self> {
        let bytes = Secret::new(seed.to_bytes_le());
        let mut key = Secret::new([0; 32]);
        key.get_mut(..bytes.len())
            .ok_or_else(|| Error::invalid("seed", "must be below 2^256"))?
            .copy_from_slice(&bytes);
        Ok(Self(Kind::Seeded(Box::new(ChaCha20Rng::from_seed(*key)))))
    }

    /// These bytes, in order and once: for tests that say what is drawn, and never for releases.
    pub fn listed(bytes: Vec<u8>) -> Self {
        Self(Kind::Listed(Secret::new(bytes), 0))
    }

    /// Fills a buffer with random bytes.
    ///
    /// Many bytes of the system are the `ChaCha20` stream of one fresh key of the system, which is wiped before this
    /// returns: they are as good as the key as long as `ChaCha20` is a pseudo-random generator.
    ///
    /// # Errors
    /// [`Error::Entropy`] when the operating system has none to give, or a list is used up.
    pub fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        match &mut self.0 {
            Kind::System if bytes.len() <= DIRECT_BYTES => fill_from_system(bytes),
            Kind::System => {
                let outcome = expand_from_system(bytes);
                overwrite_stack();
                outcome
            }
            Kind::Seeded(stream) => {
                stream.fill_bytes(bytes);
                Ok(())
            }
            Kind::Listed(list, used) => {
                let Some(next) = list.get(*used..*used + bytes.len()) else {
                    return Err(Error::Entropy { message: "the listed bytes are used up".to_owned() });
                };
                bytes.copy_from_slice(next);
                *used += bytes.len();
                Ok(())
            }
        }
    }

    /// The next bytes, taken out of the source, to be read in parts without it.
    ///
    /// Those of the system are the `ChaCha20` stream of one fresh key, as in [`Source::fill`]. A seeded source goes on
    /// behind them, from a multiple of four bytes on.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn stream(&mut self, number: u64) -> Result<Stream> {
        match &mut self.0 {
            Kind::System if number > DIRECT_BYTES as u64 => {
                let mut key = Secret::new([0; 32]);
                fill_from_system(&mut *key)?;
                Ok(Stream(Part::Keyed(Box::new(ChaCha20Rng::from_seed(*key)))))
            }
            Kind::Seeded(stream) => {
                let position = stream.get_word_pos();
                let mut part = ChaCha20Rng::from_seed(*Secret::new(stream.get_seed()));
                part.set_word_pos(position);
                stream.set_word_pos(position + u128::from(number.div_ceil(4)));
                Ok(Stream(Part::Keyed(Box::new(part))))
            }
            Kind::Listed(list, used) if number > (list.len() - *used) as u64 => {
                Err(Error::Entropy { message: "the listed bytes are used up".to_owned() })
            }
            Kind::System | Kind::Listed(..) => {
                // Few bytes of the system, or what is listed.
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                let mut bytes = Secret::new(vec![0; number]);
                self.fill(&mut bytes)?;
                Ok(Stream(Part::Listed(bytes, 0)))
            }
        }
    }

    /// 128 random bits.
    ///
    /// # Errors
    /// As [`Source::fill`].
    pub fn bits(&mut self) -> Result<u128> {
        let mut bytes = Secret::new([0; 16]);
        self.fill(&mut *bytes)?;
        Ok(u128::from_le_bytes(*bytes))
    }

    /// A uniform integer from 0 to `bound` - 1, by rejection: exactly uniform, in fewer than two rounds on average.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for the bound 0; as [`Source::fill`].
    pub fn below(&mut self, bound: &Natural) -> Result<Natural> {
        if bound.is_zero() {
            return Err(Error::invalid("bound", "must be at least 1; there is no integer below 0 to draw"));
        }
        let bits = (bound - 1_u32).bits();
        // Whole words, so that a seeded stream is the same however its bytes are asked for.
        let words = usize::try_from(bits.div_ceil(32)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; words * 4];
        loop {
            self.fill(&mut bytes)?;
            let candidate = Natural::from_bytes_le(&bytes) >> (words as u64 * 32 - bits);
            if &candidate < bound {
                return Ok(candidate);
            }
        }
    }

    /// A uniform index from 0 to `bound` - 1.
    ///
    /// # Errors
    /// As [`Source::below`].
    pub fn index_below(&mut self, bound: usize) -> Result<usize> {
        let index = self.below(&Natural::from(bound))?;
        Ok(index.to_usize().unwrap_or(0)) // below a usize
    }

    /// A uniform subset of {0, ..., `population` - 1} of the given size, in increasing order.
    ///
    /// # Numerics
    /// Floyd's algorithm: by induction over j, the set is uniform among the subsets of {0, ..., j} of its size.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a size above the population; [`Error::TooLarge`] beyond [`MOST_CHOSEN`] elements; as
    /// [`Source::fill`]; [`Error::Canceled`].
    pub fn subset(&mut self, population: usize, size: usize, control: &Control) -> Result<Vec<usize>> {
        if size > population {
            let message = format!("must be at most the population of {population}; got {size}");
            return Err(Error::invalid("size", message));
        }
        if size > MOST_CHOSEN {
            return Err(Error::too_large(format!(
                "size: {size} elements of one subset, where at most {MOST_CHOSEN} are drawn; draw a part of the \
                 population at a time"
            )));
        }
        let mut chosen = BTreeSet::new();
        for last in population - size..population {
            control.check()?;
            let candidate = self.index_below(last + 1)?;
            if !chosen.insert(candidate) {
                chosen.insert(last);
            }
        }
        Ok(chosen.into_iter().collect())
    }

    /// An index drawn with probability exactly proportional to its weight.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when no weight is positive; as [`Source::fill`].
    pub fn weighted(&mut self, weights: &[Natural]) -> Result<usize> {
        let total: Natural = weights.iter().sum();
        if total.is_zero() {
            return Err(Error::invalid("weights", "at least one must be positive"));
        }
        let target = self.below(&total)?;
        // All weights are read, whichever index is drawn.
        let mut cumulative = Natural::ZERO;
        Ok(weights
            .iter()
            .filter(|&weight| {
                cumulative += weight;
                cumulative <= target
            })
            .count())
    }
}

/// Random bytes that were taken out of a source; wiped with it.
pub struct Stream(Part);

enum Part {
    Keyed(Box<ChaCha20Rng>),
    /// Bytes, and how many of them are used.
    Listed(Secret<Vec<u8>>, usize),
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Stream(..)")
    }
}

impl Stream {
    /// Fills a buffer with the next bytes: fast where all parts but the last are of multiples of 512 bytes.
    ///
    /// # Panics
    /// Beyond the number of bytes that were taken, in a list.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        match &mut self.0 {
            Part::Keyed(stream) => fill_keyed(stream, bytes),
            Part::Listed(list, used) => {
                bytes.copy_from_slice(&list[*used..*used + bytes.len()]);
                *used += bytes.len();
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Part::Keyed(_) = self.0 {
            overwrite_stack();
        }
    }
}

/// The next bytes of a stream, eight blocks at a time where there are so many.
#[inline(never)]
fn fill_keyed(stream: &mut ChaCha20Rng, bytes: &mut [u8]) {
    let position = stream.get_word_pos();
    let (block, within) = (position / 16, position % 16);
    let wide = if within == 0 { bytes.len() / WIDE_BYTES * WIDE_BYTES } else { 0 };
    let mut rest = bytes;
    if let (true, Ok(block)) = (wide > 0, u64::try_from(block)) {
        let (first, others) = rest.split_at_mut(wide);
        if fill_wide(&Secret::new(stream.get_seed()), block, first) {
            stream.set_word_pos(position + wide as u128 / 4);
        } else {
            stream.fill_bytes(first);
        }
        rest = others;
    }
    stream.fill_bytes(rest);
}

/// The stream of a fresh key of the system. Its copies are on the stack, in frames that end with this one.
#[inline(never)]
fn expand_from_system(bytes: &mut [u8]) -> Result<()> {
    let mut key = Secret::new([0; 32]);
    fill_from_system(&mut *key)?;
    fill_keyed(&mut ChaCha20Rng::from_seed(*key), bytes);
    Ok(())
}

/// Overwrites what a function that was called just before left on the stack, up to 4096 bytes of it.
#[inline(never)]
fn overwrite_stack() {
    [0_u64; 512].zeroize();
}

fn fill_from_system(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| Error::Entropy { message: error.to_string() })
}
