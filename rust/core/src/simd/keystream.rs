//! The keystream of `ChaCha20`, eight blocks at a time.
//!
//! The crate that makes our random bits makes four blocks at a time, each step of which waits for the one before. With
//! eight the processor has as much to do as it can: about half the time. The bits are the same.
//!
//! `unsafe` here is stores of vectors, and the call of a function compiled for instructions that were checked to be there.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use super::dispatch::has_avx2;

/// Bytes of eight blocks.
pub const WIDE_BYTES: usize = 512;

/// Fills bytes with the stream of a key (little endian) from a block on, the number of the nonce being 0, and says
/// whether it did: it does on processors with 256-bit vectors.
///
/// Secret: the key and the bytes. Public: the block, and how many bytes there are.
///
/// # Panics
/// Unless there is a multiple of [`WIDE_BYTES`] bytes.
pub fn fill_wide(key: &[u8; 32], block: u64, bytes: &mut [u8]) -> bool {
    assert!(bytes.len().is_multiple_of(WIDE_BYTES), "whole groups of blocks");
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the instructions were found on this machine.
        unsafe { avx2::fill(key, block, bytes) };
        return true;
    }
    let _ = (key, block, bytes);
    false
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::WIDE_BYTES;
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;
    use std::array::from_fn;

    /// The rows of the states of two blocks, side by side.
    type Rows = [__m256i; 4];

    #[inline]
    #[target_feature(enable = "avx2")]
    #[allow(clippy::cast_possible_wrap)]
    fn row(words: [u32; 4]) -> __m256i {
        let [a, b, c, d] = words.map(|word| word as i32);
        _mm256_setr_epi32(a, b, c, d, a, b, c, d)
    }

    /// Rotates every word to the left.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn rotated<const LEFT: i32, const RIGHT: i32>(x: __m256i) -> __m256i {
        _mm256_or_si256(_mm256_slli_epi32::<LEFT>(x), _mm256_srli_epi32::<RIGHT>(x))
    }

    /// The quarter rounds of all columns.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn quarters(states: &mut [Rows; 4]) {
        let sixteen = _mm256_setr_epi8(
            2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14,
            15, 12, 13,
        );
        let eight = _mm256_setr_epi8(
            3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14, 3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15,
            12, 13, 14,
        );
        for [a, b, _, d] in states.iter_mut() {
            *a = _mm256_add_epi32(*a, *b);
            *d = _mm256_shuffle_epi8(_mm256_xor_si256(*d, *a), sixteen);
        }
        for [_, b, c, d] in states.iter_mut() {
            *c = _mm256_add_epi32(*c, *d);
            *b = rotated::<12, 20>(_mm256_xor_si256(*b, *c));
        }
        for [a, b, _, d] in states.iter_mut() {
            *a = _mm256_add_epi32(*a, *b);
            *d = _mm256_shuffle_epi8(_mm256_xor_si256(*d, *a), eight);
        }
        for [_, b, c, d] in states.iter_mut() {
            *c = _mm256_add_epi32(*c, *d);
            *b = rotated::<7, 25>(_mm256_xor_si256(*b, *c));
        }
    }

    #[target_feature(enable = "avx2")]
    #[allow(clippy::cast_possible_wrap, clippy::cast_ptr_alignment)] // stores need no alignment
    pub(super) fn fill(key: &[u8; 32], block: u64, bytes: &mut [u8]) {
        let words: [u32; 8] =
            from_fn(|i| u32::from_le_bytes([key[4 * i], key[4 * i + 1], key[4 * i + 2], key[4 * i + 3]]));
        let [a, b, c, d, e, f, g, h] = words;
        // "expand 32-byte k"
        let start =
            [row([0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]), row([a, b, c, d]), row([e, f, g, h])];
        let mut number = block;
        for eight in bytes.chunks_exact_mut(WIDE_BYTES) {
            // The two blocks of a state are neighbors.
            let counters: [__m256i; 4] = from_fn(|pair| {
                let first = number.wrapping_add(2 * pair as u64);
                _mm256_setr_epi64x(first as i64, 0, first.wrapping_add(1) as i64, 0)
            });
            number = number.wrapping_add(8);
            let mut states: [Rows; 4] = counters.map(|counter| [start[0], start[1], start[2], counter]);
            for _ in 0..10 {
                quarters(&mut states);
                // Diagonals become columns, and go back.
                for [_, b, c, d] in &mut states {
                    *b = _mm256_shuffle_epi32::<0b00_11_10_01>(*b);
                    *c = _mm256_shuffle_epi32::<0b01_00_11_10>(*c);
                    *d = _mm256_shuffle_epi32::<0b10_01_00_11>(*d);
                }
                quarters(&mut states);
                for [_, b, c, d] in &mut states {
                    *b = _mm256_shuffle_epi32::<0b10_01_00_11>(*b);
                    *c = _mm256_shuffle_epi32::<0b01_00_11_10>(*c);
                    *d = _mm256_shuffle_epi32::<0b00_11_10_01>(*d);
                }
            }
            for ((state, counter), two) in states.iter().zip(counters).zip(eight.chunks_exact_mut(128)) {
                let [a, b, c, d] = *state;
                let rows = [
                    _mm256_add_epi32(a, start[0]),
                    _mm256_add_epi32(b, start[1]),
                    _mm256_add_epi32(c, start[2]),
                    _mm256_add_epi32(d, counter),
                ];
                let into = two.as_mut_ptr().cast::<__m256i>();
                let first = |x, y| _mm256_permute2x128_si256::<0x20>(x, y);
                let second = |x, y| _mm256_permute2x128_si256::<0x31>(x, y);
                // SAFETY: four vectors of 32 bytes are the 128 bytes of `two`; stores need no alignment.
                unsafe {
                    _mm256_storeu_si256(into, first(rows[0], rows[1]));
                    _mm256_storeu_si256(into.add(1), first(rows[2], rows[3]));
                    _mm256_storeu_si256(into.add(2), second(rows[0], rows[1]));
                    _mm256_storeu_si256(into.add(3), second(rows[2], rows[3]));
                }
            }
        }
    }
}
