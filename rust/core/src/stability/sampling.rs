//! Uniform stable sets, and uniform sets of all deletions above them.

use super::{
    prefixes::{Prefixes, Weighted},
    typed::StableFamily,
};
use crate::{
    Error, Result,
    control::Control,
    exact::{
        Natural,
        binomial::{binomial, binomial_row},
    },
};
use num_traits::{One, Zero};

/// Cells walked between two looks at the control.
const CHECK_EVERY: usize = 1 << 12;

impl StableFamily {
    /// Draws a stable set S of r users uniformly, then a superset T of size D uniformly, as deletion vectors (s, t)
    /// in the order of the types. `below(n)` draws a uniform integer from 0 to n - 1.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an r above the limit, or without a stable set of that size; errors of `below`;
    /// [`Error::Canceled`].
    pub fn sample(
        &self,
        r: usize,
        below: &mut dyn FnMut(&Natural) -> Result<Natural>,
        control: &Control,
    ) -> Result<(Vec<usize>, Vec<usize>)> {
        if r > self.limit() {
            return Err(Error::invalid("r", format!("{r} exceeds the limit {}", self.limit())));
        }
        let size = self.count(r, r, control)?.swap_remove(0);
        if size.is_zero() {
            return Err(Error::invalid("r", format!("no set of {r} users is stable")));
        }
        let s = self.stable_vector(r, below(&size)?, control)?;
        let mut t = s.clone();
        let mut users = self.users() - r;
        let mut rest = self.deletions() - r;
        for (axis, &count) in self.counts().iter().enumerate() {
            let left = count - s[axis];
            users -= left;
            let draw = below(&binomial(users + left, rest))?;
            let taken = of_one_type(draw, left, users, rest, control)?;
            t[axis] += taken;
            rest -= taken;
        }
        Ok((self.by_type(&s), self.by_type(&t)))
    }

    /// The stable deletion vector, by axis, of the stable set of size r with index `draw`.
    fn stable_vector(&self, r: usize, mut draw: Natural, control: &Control) -> Result<Vec<usize>> {
        let rows: Vec<Vec<Natural>> = self.counts().iter().map(|&count| binomial_row(count, r)).collect();
        let highest = self.last().len();
        let mut walk =
            Weighted::new(Prefixes::new(self.last(), self.strides(), r), &rows[..highest], Natural::one());
        for walked in 0.. {
            if walked % CHECK_EVERY == 0 {
                control.check()?;
            }
            let top = r - walk.at.size;
            if self.height(walk.at.cell) <= top {
                let weight = walk.weight() * &rows[highest][top];
                if draw < weight {
                    walk.at.coordinates.push(top);
                    return Ok(walk.at.coordinates);
                }
                draw -= weight;
            }
            if !walk.advance() {
                break;
            }
        }
        Err(Error::invalid("below", "gave a number that is not below its argument"))
    }
}

/// How many of `left` users are among the `rest` of all `left` + `others` in the set with index `draw`, by this number first.
fn of_one_type(
    mut draw: Natural,
    left: usize,
    others: usize,
    rest: usize,
    control: &Control,
) -> Result<usize> {
    let (least, most) = (rest.saturating_sub(others), left.min(rest));
    let mut weight = binomial(left, least) * binomial(others, rest - least);
    for taken in least..most {
        control.check()?;
        if draw < weight {
            return Ok(taken);
        }
        draw -= &weight;
        // C(left, k) C(others, rest - k) for the next k: exact, since it is an integer.
        weight = weight * (left - taken) * (rest - taken) / ((taken + 1) * (others + taken + 1 - rest));
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_a_type_has_as_many_indices_as_sets() {
        let control = Control::new();
        for (left, others) in (0..7).flat_map(|left| (0..7).map(move |others| (left, others))) {
            for rest in 0..=left + others {
                let mut found = vec![0_u64; left + 1];
                let mut index = Natural::zero();
                while index < binomial(left + others, rest) {
                    let taken =
                        of_one_type(index.clone(), left, others, rest, &control).expect("not canceled");
                    found[taken] += 1;
                    index += 1_u32;
                }
                // Subsets of all users as bits, the type's first.
                let mut expected = vec![0_u64; left + 1];
                for set in (0_u32..1 << (left + others)).filter(|set| set.count_ones() as usize == rest) {
                    expected[(set & ((1 << left) - 1)).count_ones() as usize] += 1;
                }
                assert_eq!(found, expected, "{left} {others} {rest}");
            }
        }
    }

    #[test]
    fn the_walk_can_be_stopped() {
        let control = Control::new();
        control.cancel();
        let draw = binomial(40_usize, 20) - 1_u32;
        assert!(of_one_type(draw, 20, 20, 20, &control).unwrap_err().is_canceled());
    }
}
