//! What many hypotheses say about points, a bit each.
//!
//! Paper: [GKKMMZ23, Theorem 4].

use crate::{Error, Result, control::Control};
use rayon::prelude::*;

/// Words that are worked on together.
pub(super) const WORDS: usize = 4;
/// Hypotheses in these.
pub(super) const BITS: usize = 64 * WORDS;
/// What so many hypotheses say about a point.
pub(super) type Block = [u64; WORDS];

/// What hypotheses say about points: one bit each, the words of a point side by side.
#[derive(Debug, Clone)]
pub struct Predictions {
    blocks: Vec<Block>,
    blocks_per_point: usize,
    hypotheses: usize,
    points: usize,
}

impl Predictions {
    /// From a matrix of zeros and ones with a row for every hypothesis and a column for every point.
    ///
    /// # Errors
    /// For no hypotheses, other numbers than 0 and 1, and when canceled.
    pub fn new(matrix: &[u8], hypotheses: usize, control: &Control) -> Result<Self> {
        if hypotheses == 0 || !matrix.len().is_multiple_of(hypotheses) {
            return Err(Error::invalid("predictions", "a matrix of at least one hypothesis is needed"));
        }
        let (points, blocks_per_point) = (matrix.len() / hypotheses, hypotheses.div_ceil(BITS));
        let mut blocks = vec![[0; WORDS]; points * blocks_per_point];
        if points > 0 {
            let together = 64;
            blocks.par_chunks_mut(together * blocks_per_point).enumerate().try_for_each(
                |(chunk, blocks)| {
                    control.check()?;
                    let columns = chunk * together..points.min((chunk + 1) * together);
                    let mut seen = 0;
                    for (hypothesis, row) in matrix.chunks_exact(points).enumerate() {
                        let (block, word, bit) = (hypothesis / BITS, hypothesis % BITS / 64, hypothesis % 64);
                        for (&prediction, point) in
                            row[columns.clone()].iter().zip(blocks.chunks_exact_mut(blocks_per_point))
                        {
                            seen |= prediction;
                            point[block][word] |= u64::from(prediction) << bit;
                        }
                    }
                    if seen > 1 {
                        return Err(Error::invalid("predictions", "only 0 and 1 are accepted"));
                    }
                    Ok(())
                },
            )?;
        }
        Ok(Self { blocks, blocks_per_point, hypotheses, points })
    }

    /// The number of hypotheses.
    pub fn hypotheses(&self) -> usize {
        self.hypotheses
    }

    /// The number of points.
    pub fn points(&self) -> usize {
        self.points
    }

    /// How many blocks hold the hypotheses of one point.
    pub(super) fn blocks_per_point(&self) -> usize {
        self.blocks_per_point
    }

    /// What the hypotheses of a block say about a point.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(super) fn block(&self, point: u32, block: usize) -> Block {
        self.blocks[point as usize * self.blocks_per_point + block]
    }

    /// What a hypothesis says about a point.
    pub(super) fn label(&self, hypothesis: usize, point: u32) -> u8 {
        let block = self.block(point, hypothesis / BITS);
        u8::from(block[hypothesis % BITS / 64] >> (hypothesis % 64) & 1 == 1)
    }
}
