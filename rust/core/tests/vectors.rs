//! Vectors of users: every kernel against plain arithmetic, bit for bit, and what is enforced in integers.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_lossless)]

use proptest::prelude::*;
use userdp_core::{
    Error, Result,
    control::Control,
    simd::{Kernel, hadamard::transform},
    vectors::{
        Filled, Subset, UserVectors,
        bins::{bin_counts, occupied_bins},
        clip::{Ball, clipped_moments, clipped_sum},
        excess::{Excess, MOST_RUNGS, clipping_excess},
        hadamard::Rotation,
        means::{Means, MeansOptions, Records},
        norm::{Region, squared_distance, take_into},
        rows::RowsOfUsers,
        winsorize::winsorized_sum,
        within::counts_within,
    },
};

/// Rows of equal length.
struct Table(Vec<Vec<f64>>, usize);

impl Records for Table {
    fn rows(&self) -> usize {
        self.0.len()
    }

    fn columns(&self) -> usize {
        self.1
    }

    fn read(&self, row: usize, out: &mut [f64]) {
        out.copy_from_slice(&self.0[row]);
    }
}

/// Numbers of any kind: also those that make floating-point arithmetic overflow, underflow and give NaN.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -2.0..2.0,
        1 => prop::sample::select(vec![
            f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 1e308, -1e200, 1e-200, 5e-324, 0.0, -0.0,
        ]),
    ]
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

fn plain_transform(vector: &mut [f64]) {
    let mut half = 1;
    while half < vector.len() {
        for start in (0..vector.len()).step_by(2 * half) {
            for i in start..start + half {
                let (a, b) = (vector[i], vector[i + half]);
                (vector[i], vector[i + half]) = (a + b, a - b);
            }
        }
        half *= 2;
    }
}

proptest! {
    #[test]
    fn transforms_are_the_plain_one(log in 0_u32..14, seed in prop::collection::vec(-1e3..1e3, 1..50)) {
        let vector: Vec<f64> = (0..1_usize << log).map(|i| seed[i % seed.len()] * (1.0 + i as f64 / 7.0)).collect();
        let factors: Vec<f64> = (0..vector.len()).map(|i| if i % 3 == 0 { -0.3 } else { 0.7 }).collect();
        let mut expected: Vec<f64> = vector.iter().zip(&factors).map(|(x, factor)| x * factor).collect();
        plain_transform(&mut expected);
        for kernel in Kernel::supported() {
            for shift in [0, 1, 5] {
                // Elsewhere in memory.
                let mut memory = vec![0.0; shift];
                memory.extend(&vector);
                transform(kernel, &mut memory[shift..], &factors);
                prop_assert_eq!(bits(&memory[shift..]), bits(&expected), "{:?}", kernel);
            }
        }
    }

    /// Records are finite and in the region whatever they were, and the same on every kernel and at every address.
    #[test]
    fn records_are_taken_into_the_region(
        record in prop::collection::vec(number(), 1..100), bound in 0.1..10.0, cube in any::<bool>(), shift in 0_usize..8,
    ) {
        let region = if cube { Region::Cube(bound) } else { Region::Ball(bound) };
        let center: Vec<f64> = (0..record.len()).map(|i| i as f64 / 100.0 - 0.3).collect();
        let mut all: Vec<Vec<u64>> = Vec::new();
        for kernel in Kernel::supported() {
            let mut memory = vec![0.0; shift];
            memory.extend(&record);
            let taken = &mut memory[shift..];
            take_into(kernel, taken, Some(&center), Some(region));
            prop_assert!(taken.iter().all(|x| x.abs() <= bound * (1.0 + 1e-12)));
            let norm = squared_distance(kernel, taken, None).sqrt();
            prop_assert!(cube || norm <= bound * (1.0 + 1e-12));
            all.push(bits(taken));
        }
        prop_assert!(all.iter().all(|taken| taken == &all[0]));
    }

    /// The norm of integers is at most R on every kernel, and they are the same.
    #[test]
    fn clipped_integers_are_in_the_ball(
        vector in prop::collection::vec(-3.0..3.0, 1..100), radius in 0.01..4.0, log_grid in -30_i32..1,
    ) {
        let grid = 2_f64.powi(log_grid);
        let center: Vec<f64> = (0..vector.len()).map(|i| i as f64 / 50.0 - 1.0).collect();
        if radius < grid || radius / grid >= 2_147_483_648.0 {
            prop_assert!(Ball::new(&center, radius, grid).is_err());
            return Ok(());
        }
        let ball = Ball::new(&center, radius, grid).unwrap();
        prop_assert_eq!(f64::from(ball.steps()), (radius / grid).floor());
        let mut all: Vec<Vec<i32>> = Vec::new();
        for kernel in Kernel::supported() {
            let mut integers = vec![0; vector.len()];
            ball.clip(kernel, &vector, &mut integers);
            let squared: i128 = integers.iter().map(|&y| i128::from(y).pow(2)).sum();
            prop_assert!(squared <= i128::from(ball.steps()).pow(2));
            all.push(integers);
        }
        prop_assert!(all.iter().all(|integers| integers == &all[0]));
    }
}

/// sqrt(R^2 + 1) rounds to R: only the check in integers sees that the vector is too long.
#[test]
fn the_integers_decide() {
    let (steps, length) = (1 << 30, 40);
    for kernel in Kernel::supported() {
        let mut vector = vec![0.0; length];
        (vector[3], vector[38]) = (f64::from(steps), -1.0);
        assert_eq!(squared_distance(kernel, &vector, None).sqrt(), f64::from(steps));
        let center = vec![0.0; length];
        let mut integers = vec![7; length];
        Ball::new(&center, f64::from(steps), 1.0).unwrap().clip(kernel, &vector, &mut integers);
        let mut expected = vec![0; length];
        expected[3] = steps - 1;
        assert_eq!(integers, expected);
    }
}

/// The largest integers there are: sums of their squares need more than 64 bits.
#[test]
fn squares_do_not_overflow() {
    let most = f64::from(i32::MAX);
    let (center, vector) = (vec![0.0; 4096], vec![2.0 * most; 4096]);
    for kernel in Kernel::supported() {
        let mut integers = vec![0; 4096];
        Ball::new(&center, most, 1.0).unwrap().clip(kernel, &vector, &mut integers);
        assert!(integers.iter().all(|&y| y == i32::MAX / 64), "{:?}", integers[0]);
    }
}

/// Rounding half up would double the norm of this vector.
#[test]
fn halves_are_not_rounded_up() {
    let (center, vector) = (vec![0.0; 64], vec![0.5; 64]);
    let mut integers = vec![1; 64];
    Ball::new(&center, 4.0, 1.0).unwrap().clip(Kernel::Scalar, &vector, &mut integers);
    assert_eq!(integers, vec![0; 64]);
}

/// Vectors as they are given, and nothing for users without any.
struct Given(Vec<Option<Vec<f64>>>, usize);

impl UserVectors for Given {
    fn users(&self) -> usize {
        self.0.len()
    }

    fn dimension(&self) -> usize {
        self.1
    }

    fn write(&self, user: usize, out: &mut [f64]) -> bool {
        // What is left of the user before must not count.
        out.fill(7.0);
        self.0[user].as_ref().is_some_and(|vector| {
            out.copy_from_slice(vector);
            true
        })
    }
}

proptest! {
    /// What one user adds is bounded in integers, for all vectors.
    #[test]
    fn moments_and_excess_are_bounded(
        vector in prop::collection::vec(-3.0..3.0, 1..80), radius in 0.05..2.0, log_grid in -26_i32..-5, squares in 1_u32..1 << 30,
    ) {
        let (d, grid, control) = (vector.len(), 2_f64.powi(log_grid), Control::new());
        let center: Vec<f64> = (0..d).map(|i| i as f64 / 50.0 - 1.0).collect();
        let given = Given(vec![Some(vector.clone())], d);
        let steps = i64::from(Ball::new(&center, radius, grid).unwrap().steps());
        let (sums, second) = clipped_moments(&given, &center, radius, grid, squares, &control).unwrap();
        prop_assert_eq!(&sums, &clipped_sum(&given, &center, radius, grid, &control).unwrap());
        prop_assert!((0..=i64::from(squares)).contains(&second));
        let distance = squared_distance(Kernel::Scalar, &vector, Some(&center));
        let part = (distance / (2.0 * steps as f64 * grid).powi(2)).min(1.0) * f64::from(squares);
        prop_assert!((second as f64 - part.floor()).abs() <= 1.0, "{} {}", second, part);
        let excess = clipping_excess(&given, &center, radius, 30.0, grid, 5, &control).unwrap();
        let squared: i128 = excess.pull.iter().map(|&x| i128::from(x).pow(2)).sum();
        prop_assert!(squared <= i128::from(steps).pow(2));
        prop_assert!(excess.beyond.iter().all(|x| (0..=steps).contains(x)));
        // In exact numbers, but for the steps that truncation costs.
        let (length, r) = (distance.sqrt() / grid, steps as f64);
        let lost = (d as f64).sqrt() + 2.0;
        for (rung, &sum) in (1..).zip(&excess.beyond) {
            let far = (length / 2_f64.powi(rung) - r).clamp(0.0, r);
            prop_assert!((sum as f64 - far).abs() <= lost);
        }
        let share = (length - r).clamp(0.0, r) / length;
        let off: f64 = excess.pull.iter().zip(vector.iter().zip(&center))
            .map(|(&sum, (x, c))| (sum as f64 - (x - c) / grid * share).powi(2)).sum();
        prop_assert!(off.sqrt() <= 2.0 * lost, "{} {}", off.sqrt(), lost);
    }
}

proptest! {
    /// Vectors that are certainly inside take a shorter way to the same integers, also next to the end of the ball.
    #[test]
    fn the_short_way_has_the_same_integers(
        direction in prop::collection::vec(-1.0..1.0, 1..80), radius in 0.05..2.0, log_grid in -26_i32..-5,
        off in prop::sample::select(vec![0.0, 0.25, 52.0, 40.0, 30.0, 22.0, 21.0, 20.0, 19.0, 18.0, 3.0, 1.0]), outside: bool,
    ) {
        let (d, grid, control) = (direction.len(), 2_f64.powi(log_grid), Control::new());
        let center: Vec<f64> = (0..d).map(|i| i as f64 / 50.0 - 1.0).collect();
        let ball = Ball::new(&center, radius, grid).unwrap();
        let off = 2_f64.powf(-off);
        let length = f64::from(ball.steps()) * grid * (if outside { 1.0 + off } else { 1.0 - off });
        let norm = squared_distance(Kernel::Scalar, &direction, None).sqrt();
        prop_assume!(norm > 1e-6);
        let vector: Vec<f64> = direction.iter().zip(&center).map(|(x, c)| c + x / norm * length).collect();
        let given = Given(vec![Some(vector.clone())], d);
        let mut integers = vec![0; d];
        ball.clip(Kernel::Scalar, &vector, &mut integers);
        let wanted: Vec<i64> = integers.iter().map(|&y| y.into()).collect();
        prop_assert_eq!(&clipped_sum(&given, &center, radius, grid, &control).unwrap(), &wanted);
        prop_assert_eq!(&clipped_moments(&given, &center, radius, grid, 9, &control).unwrap().0, &wanted);
        // What is beyond, from the integers in a ball that takes nothing away.
        let squared = Ball::new(&center, 30.0, grid).unwrap().clip(Kernel::Scalar, &vector, &mut integers);
        let inner = u128::from(ball.steps().unsigned_abs());
        let excess = clipping_excess(&given, &center, radius, 30.0, grid, 1, &control).unwrap();
        if squared <= inner * inner {
            prop_assert!(excess.pull.iter().chain(&excess.beyond).all(|&sum| sum == 0));
        } else {
            let norm = squared.isqrt() + u128::from(squared.isqrt().pow(2) < squared);
            let share = i128::try_from((norm - inner).min(inner)).unwrap();
            for (&sum, &y) in excess.pull.iter().zip(&integers) {
                prop_assert_eq!(i128::from(sum), i128::from(y) * share / i128::try_from(norm).unwrap());
            }
        }
    }
}

#[test]
fn users_without_rows_are_at_the_origin_when_filled() {
    let given = Given(vec![None, Some(vec![3.0, 4.0]), None], 2);
    let (filled, control) = (Filled(&given), Control::new());
    let center = [-1.0, 0.0];
    let moments =
        |vectors: &dyn UserVectors| clipped_moments(vectors, &center, 8.0, 1.0, 256, &control).unwrap();
    assert_eq!(moments(&given), (vec![4, 4], 32));
    // The origin is (1, 0) from the center.
    assert_eq!(moments(&filled), (vec![6, 4], 32 + 2));
    assert_eq!((filled.users(), filled.dimension()), (3, 2));
}

/// The largest numbers there are do not wrap: nothing panics in a build with checks.
#[test]
fn the_largest_excess() {
    let most = f64::from(i32::MAX);
    let given = Given(vec![Some(vec![2.0 * most; 3]), Some(vec![-most, 0.0, 0.0])], 3);
    let control = Control::new();
    for radius in [1.0, f64::from(1 << 30), most] {
        let excess = clipping_excess(&given, &[0.0; 3], radius, most, 1.0, MOST_RUNGS, &control).unwrap();
        assert!(excess.beyond.iter().all(|&x| 0 <= x && x <= 2 * radius as i64));
    }
    let (_, second) = clipped_moments(&given, &[0.0; 3], most, 1.0, u32::MAX >> 1, &control).unwrap();
    assert_eq!(second, i64::from(i32::MAX) + i64::from(i32::MAX >> 2));
}

type Moments = ((Vec<i64>, i64), Excess);
type Integers = (Vec<i64>, Vec<i64>, Vec<u32>, Vec<i64>, Vec<(Vec<u64>, Vec<u32>)>, Moments);

fn integers(vectors: &dyn UserVectors) -> Result<Integers> {
    let (d, control) = (vectors.dimension(), Control::new());
    let low: Vec<f64> = (0..d).map(|j| -0.5 - j as f64 / 64.0).collect();
    Ok((
        clipped_sum(vectors, &vec![0.01; d], 0.3, 2_f64.powi(-26), &control)?,
        winsorized_sum(vectors, &low, 1 << 30, 2_f64.powi(-30), &control)?,
        bin_counts(vectors, 64, 1.0, &control)?,
        counts_within(vectors, &vec![0.0; d], &[0.1, 0.5, 1.0], &control)?,
        occupied_bins(vectors, 0..d, 1 << 40, 1.0, &control)?,
        (
            clipped_moments(&Filled(vectors), &vec![0.01; d], 0.3, 2_f64.powi(-26), 1 << 20, &control)?,
            clipping_excess(&Filled(vectors), &vec![0.01; d], 0.1, 2.5, 2_f64.powi(-20), 4, &control)?,
        ),
    ))
}

/// The integers of every user, from users' rows that are laid out in an order given by keys.
fn of_users(
    users: &[Vec<Vec<f64>>],
    keys: &[u64],
    rotate: bool,
    kernel: Kernel,
    threads: usize,
) -> Vec<Integers> {
    let mut rows: Vec<(u64, u32, &Vec<f64>)> = Vec::new();
    for (user, records) in users.iter().enumerate() {
        // A user's rows keep their order.
        let mut own: Vec<u64> =
            (0..records.len()).map(|row| keys[(user * 31 + row * 7) % keys.len()]).collect();
        own.sort_unstable();
        rows.extend(own.into_iter().zip(records).map(|(key, row)| (key, user as u32, row)));
    }
    rows.sort_by_key(|row| row.0);
    let columns = users.iter().flatten().next().map_or(1, Vec::len);
    let table = Table(rows.iter().map(|row| row.2.clone()).collect(), columns);
    let codes: Vec<u32> = rows.iter().map(|row| row.1).collect();
    let control = Control::new();
    let of = RowsOfUsers::new(&codes, users.len(), &control).unwrap();
    let signs: Vec<i8> = (0..columns.next_power_of_two()).map(|j| if j % 3 == 0 { -1 } else { 1 }).collect();
    let options = MeansOptions {
        center: Some(vec![0.05; columns]),
        units: rotate.then(|| (0..columns).map(|j| 0.5 + j as f64).collect()),
        region: Some(Region::Ball(1.0)),
        rotation: rotate.then(|| Rotation::new(&signs).unwrap()),
        kernel: Some(kernel),
    };
    let means = Means::new(&table, &of, &options).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let each: Vec<Integers> = (0..users.len())
            .map(|user| integers(&Subset::new(&means, &[user as u32]).unwrap()).unwrap())
            .collect();
        let (clipped, winsorized, counts, near, _, ((_, second), excess)) = integers(&means).unwrap();
        assert_eq!(second, each.iter().map(|user| user.5.0.1).sum::<i64>());
        for (place, sum) in excess.pull.iter().enumerate() {
            assert_eq!(*sum, each.iter().map(|user| user.5.1.pull[place]).sum::<i64>());
        }
        for (place, sum) in excess.beyond.iter().enumerate() {
            assert_eq!(*sum, each.iter().map(|user| user.5.1.beyond[place]).sum::<i64>());
        }
        for (place, sum) in clipped.iter().enumerate() {
            assert_eq!(*sum, each.iter().map(|user| user.0[place]).sum::<i64>());
        }
        for (place, sum) in winsorized.iter().enumerate() {
            assert_eq!(*sum, each.iter().map(|user| user.1[place]).sum::<i64>());
        }
        for (place, count) in counts.iter().enumerate() {
            assert_eq!(*count, each.iter().map(|user| user.2[place]).sum::<u32>());
        }
        for (place, count) in near.iter().enumerate() {
            assert_eq!(*count, each.iter().map(|user| user.3[place]).sum::<i64>());
        }
        each
    })
}

fn rows_of_users(columns: usize) -> impl Strategy<Value = Vec<Vec<Vec<f64>>>> {
    prop::collection::vec(
        prop::collection::vec(prop::collection::vec(number(), columns..=columns), 0..5),
        2..6,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A user's integers do not depend on where rows are, on the other users, on threads or on kernels.
    #[test]
    fn others_do_not_matter(
        (users, other) in (1_usize..40).prop_flat_map(|columns| (rows_of_users(columns), rows_of_users(columns))),
        keys in prop::collection::vec(any::<u64>(), 20), more_keys in prop::collection::vec(any::<u64>(), 20),
        rotate in any::<bool>(),
    ) {
        prop_assume!(users.iter().skip(1).any(|rows| !rows.is_empty()));
        let expected = of_users(&users, &keys, rotate, Kernel::Scalar, 1);
        for kernel in Kernel::supported() {
            prop_assert!(of_users(&users, &more_keys, rotate, kernel, 3) == expected);
        }
        let mut changed = users.clone();
        for replacement in [Vec::new(), other[0].clone()] {
            changed[0] = replacement;
            prop_assert!(of_users(&changed, &more_keys, rotate, Kernel::detect(), 2)[1..] == expected[1..]);
        }
    }
}

#[test]
fn bad_public_numbers_are_refused() {
    let (control, options) = (Control::new(), MeansOptions::default());
    let rows = RowsOfUsers::new(&[0, 1], 3, &control).unwrap();
    let table = Table(vec![vec![1.0, 2.0], vec![3.0, 4.0]], 2);
    let means = Means::new(&table, &rows, &options).unwrap();
    let names = |result: Result<Vec<i64>>| match result {
        Err(Error::InvalidArgument { argument, .. }) => argument,
        other => panic!("{other:?}"),
    };
    let origin = [0.0; 2];
    assert_eq!(names(clipped_sum(&means, &[0.0], 1.0, 0.5, &control)), "center");
    assert_eq!(names(clipped_sum(&means, &[0.0, f64::NAN], 1.0, 0.5, &control)), "center");
    assert_eq!(names(clipped_sum(&means, &origin, 1.0, 0.3, &control)), "grid");
    assert_eq!(names(clipped_sum(&means, &origin, 1.0, 2.0, &control)), "radius");
    assert_eq!(names(clipped_sum(&means, &origin, 2_147_483_648.0, 1.0, &control)), "radius");
    for squares in [0, 1 << 31] {
        let moments = clipped_moments(&means, &origin, 1.0, 0.5, squares, &control);
        assert_eq!(names(moments.map(|(sums, _)| sums)), "squares");
    }
    let excess = |center: &[f64], radius: f64, reach: f64, rungs: usize| {
        names(clipping_excess(&means, center, radius, reach, 0.5, rungs, &control).map(|excess| excess.pull))
    };
    assert_eq!(excess(&[0.0], 1.0, 2.0, 1), "center");
    assert_eq!(excess(&origin, 0.25, 2.0, 1), "radius");
    assert_eq!(excess(&origin, 1.0, 1e12, 1), "radius");
    assert_eq!(excess(&origin, 1.0, 2.0, MOST_RUNGS + 1), "rungs");
    assert_eq!(names(winsorized_sum(&means, &origin, 0, 1.0, &control)), "steps");
    assert_eq!(names(winsorized_sum(&means, &origin, 1 << 31, 1.0, &control)), "steps");
    assert_eq!(names(counts_within(&means, &origin, &[f64::NAN], &control)), "radii");
    assert!(matches!(bin_counts(&means, 1 << 40, 1.0, &control), Err(Error::TooLarge { .. })));
    assert!(bin_counts(&means, 0, 1.0, &control).is_err());
    assert!(occupied_bins(&means, 1..3, 4, 1.0, &control).is_err());
    assert!(occupied_bins(&means, 0..2, (1 << 62) + 1, 1.0, &control).is_err());
    assert!(RowsOfUsers::new(&[0, 3], 3, &control).is_err());
    assert!(
        Rotation::new(&[1, 1, 1]).is_err() && Rotation::new(&[1, 0]).is_err() && Rotation::new(&[]).is_err()
    );
    assert!(Subset::new(&means, &[3]).is_err() && Subset::new(&means, &[1, 1]).is_err());
    let control = Control::new();
    control.cancel();
    assert_eq!(clipped_sum(&means, &origin, 1.0, 0.5, &control), Err(Error::Canceled));
}
