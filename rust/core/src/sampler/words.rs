//! Many draws, each from one word of 128 random bits.

use crate::{Result, control::Control, ct::Secret, rng::Source};

/// Draws between two looks at the control, and two requests for random bytes.
const BLOCK: usize = 1 << 10;

/// Writes into each place what `value` makes of a word of its own. A `value` that needs more bits takes them from the
/// source; the words of a block are taken first.
///
/// Secret: the words and the draws. Public: their number.
///
/// # Errors
/// As [`Source::fill`] and `value`; [`crate::Error::Canceled`].
pub fn draw_each(
    source: &mut Source,
    draws: &mut [i64],
    control: &Control,
    mut value: impl FnMut(u128, &mut Source) -> Result<i64>,
) -> Result<()> {
    let mut bytes = Secret::new([0; 16 * BLOCK]);
    for block in draws.chunks_mut(BLOCK) {
        control.advance(block.len())?;
        source.fill(&mut bytes[..16 * block.len()])?;
        for (draw, bits) in block.iter_mut().zip(bytes.as_chunks::<16>().0) {
            *draw = value(u128::from_le_bytes(*bits), source)?;
        }
    }
    Ok(())
}
