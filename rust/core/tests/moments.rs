//! Second moments of users: beside exact integers, the same bits on every kernel, bounds in integers, and errors.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::needless_range_loop
)]

use userdp_core::{
    control::Control,
    simd::Kernel,
    vectors::{
        UserVectors,
        joint::{Joint, Spreads, Units},
        means::Records,
        moments::{Moments, Target},
        norm::Region,
        products::Products,
        rows::RowsOfUsers,
        within::counts_at_most,
    },
};

struct Table {
    columns: usize,
    numbers: Vec<f64>,
}

impl Records for Table {
    fn rows(&self) -> usize {
        self.numbers.len() / self.columns
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn read(&self, row: usize, out: &mut [f64]) {
        out.copy_from_slice(&self.numbers[row * self.columns..][..self.columns]);
    }
}

/// Numbers that do not add up exactly in any other order, some of them beyond the clamp.
fn table(columns: usize, rows: usize) -> Table {
    let number = |i: usize| ((i * 7919 + 13) % 10_007) as f64 / 1.0e3 - 5.0;
    Table { columns, numbers: (0..columns * rows).map(number).collect() }
}

/// V of one user's rows, in plain integers.
fn products(table: &Table, rows: &[usize]) -> Vec<Vec<i128>> {
    let size = table.columns;
    let mut sums = vec![vec![0; size]; size];
    for &row in rows {
        let z: Vec<i128> = table.numbers[row * table.columns..][..table.columns]
            .iter()
            .map(|x| (x.clamp(-4.0, 4.0) * 4096.0).round_ties_even() as i128)
            .collect();
        for k in 0..size {
            for l in 0..size {
                sums[k][l] += z[k] * z[l];
            }
        }
    }
    sums
}

fn upper(matrix: &[Vec<i128>]) -> Vec<i128> {
    (0..matrix.len()).flat_map(|k| matrix[k][k..].to_vec()).collect()
}

#[test]
fn sums_are_those_of_integers() {
    for columns in [1, 3, 4, 8, 9, 31, 52] {
        let table = table(columns, 70);
        let owner: Vec<u32> = (0..70).map(|row| if row < 40 { 0 } else { 1 + row % 2 }).collect();
        let rows = RowsOfUsers::new(&owner, 4, &Control::new()).unwrap();
        for kernel in [Kernel::Scalar, Kernel::detect()] {
            let moments = Moments::new(&table, &rows, None, Some(kernel)).unwrap();
            let mut out = vec![7.0; moments.dimension()];
            for user in 0..4_u32 {
                let own: Vec<usize> = (0..70).filter(|&row| owner[row] == user).collect();
                assert_eq!(moments.write(user as usize, &mut out), user < 3);
                let expected = upper(&products(&table, &own));
                let found: Vec<i128> = out[..expected.len()].iter().map(|x| *x as i128).collect();
                assert_eq!(found, expected);
                assert_eq!(out[expected.len()] as usize, own.len());
            }
        }
    }
}

/// The integers of the only user.
fn integers(table: &Table, target: Option<Target>, radius: u32, grid: f64) -> Vec<i64> {
    let rows = RowsOfUsers::new(&vec![0; table.rows()], 1, &Control::new()).unwrap();
    let moments = Moments::new(table, &rows, target, None).unwrap();
    moments.clipped_sum(radius, grid, &Control::new()).unwrap()
}

#[test]
fn integers_are_within_the_radius_and_near_a_scaled_matrix() {
    for columns in [1, 2, 3, 7, 20] {
        for count in [1, 2, 5, 40] {
            for radius in [1, 2, 3, 10, 1000, 1 << 20, i32::MAX.unsigned_abs()] {
                for places in [-24, -10, -2, 0, 6] {
                    let grid = 2.0_f64.powi(places);
                    let table = table(columns, count);
                    let all: Vec<usize> = (0..count).collect();
                    let exact = products(&table, &all);
                    let found = integers(&table, None, radius, grid);
                    let size = columns;
                    let mut entries = found.iter();
                    let mut squared = 0_u128;
                    let length = exact.iter().flatten().map(|v| (*v as f64).powi(2)).sum::<f64>().sqrt();
                    let mean = 1.0 / (count as f64 * f64::from(1 << 24) * grid);
                    let factor = mean.min(f64::from(radius) / length);
                    for k in 0..size {
                        for l in k..size {
                            let y = *entries.next().unwrap();
                            squared += u128::from(y.unsigned_abs()).pow(2) * (1 + u128::from(k != l));
                            // Within a step, but for the 31 bits of the factor, and one step toward 0.
                            let near = exact[k][l] as f64 * factor;
                            assert!((y as f64 - near).abs() <= 2.0 + near.abs() * 1e-8, "{y} {near}");
                            assert!(y as f64 * near.signum() <= near.abs() + 1.0);
                        }
                    }
                    assert!(squared <= u128::from(radius).pow(2));
                }
            }
        }
    }
}

#[test]
fn a_sum_is_the_sum_of_what_users_have_alone() {
    let table = table(5, 90);
    let owner: Vec<u32> = (0..90).map(|row| (row * 7) % 11).collect();
    let rows = RowsOfUsers::new(&owner, 11, &Control::new()).unwrap();
    let moments = Moments::new(&table, &rows, None, None).unwrap();
    let together = moments.clipped_sum(5000, 2.0_f64.powi(-9), &Control::new()).unwrap();
    let mut alone = vec![0; together.len()];
    for user in 0..11 {
        // The rows in another order: products are exact.
        let own: Vec<usize> = (0..90).rev().filter(|&row| owner[row] == user).collect();
        let numbers = own.iter().flat_map(|row| table.numbers[row * 5..][..5].to_vec()).collect();
        let found = integers(&Table { columns: 5, numbers }, None, 5000, 2.0_f64.powi(-9));
        alone.iter_mut().zip(found).for_each(|(sum, y)| *sum += y);
    }
    assert_eq!(together, alone);
}

#[test]
fn what_is_no_number_counts_as_zero() {
    let numbers = vec![f64::NAN, f64::INFINITY, 1e308, -1e308, 0.25, 5e-324];
    let table = Table { columns: 2, numbers };
    let joint = |region| {
        let mut out = vec![[0.0; 3]; 3];
        let targets = [f64::NAN, f64::NEG_INFINITY, 7.0];
        let joint = Joint::new(&table, Some(&targets), region, None).unwrap();
        (0..3).for_each(|row| joint.read(row, &mut out[row]));
        out
    };
    assert_eq!(joint(Region::Cube(1.0)), [[0.0, 1.0, 0.0], [1.0, -1.0, -1.0], [0.25, 5e-324, 1.0]]);
    for row in joint(Region::Ball(1.0)) {
        assert!(row[..2].iter().map(|x| x * x).sum::<f64>() <= 1.0 + 1e-12);
    }
}

/// A row with a feature beyond 4 is smaller as a whole, its constant and its target, too; all others are as they are.
#[test]
fn rows_far_out_shrink_whole() {
    let table = Table { columns: 2, numbers: vec![1.0, -1.0, 0.75, 0.0] };
    let units = |constant| Units { center: vec![0.5, 0.0], factor: vec![2.0, 128.0], constant, target: -1.0 };
    for (constant, targets) in [(true, true), (true, false), (false, true), (false, false)] {
        let (units, given) = (units(constant), [0.0, 0.5]);
        let joint =
            Joint::new(&table, targets.then_some(&given[..]), Region::Cube(1.0), Some(&units)).unwrap();
        assert_eq!(joint.columns(), 2 + usize::from(constant) + usize::from(targets));
        let expected = |row: [f64; 4]| {
            let kept = [true, true, constant, targets];
            row.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(x, _)| x).collect::<Vec<_>>()
        };
        let mut out = vec![7.0; joint.columns()];
        joint.read(0, &mut out);
        assert_eq!(out, expected([1.0 / 32.0, -4.0, 1.0 / 32.0, 1.0 / 32.0]));
        joint.read(1, &mut out);
        assert_eq!(out, expected([0.5, 0.0, 1.0, 1.5]));
    }
}

/// With a target in two parts, the integers are near those of its whole in plain integers, and within the radius.
#[test]
fn a_target_has_finer_steps() {
    for (columns, count, places, radius) in
        [(2, 1, -20, 1 << 28), (3, 5, -20, 1 << 24), (3, 7, -2, 9), (2, 4, 0, 1), (6, 40, -22, 1 << 26)]
    {
        let mut table = table(columns, count);
        for (index, row) in table.numbers.chunks_exact_mut(columns).enumerate() {
            // Targets that differ by 1e-6 only, and half of them beyond the end of their range.
            row[columns - 1] = if index % 2 == 0 { 0.3 + 1e-6 * index as f64 } else { -9.0 };
        }
        for (factor, longest, norm) in [(1.0, 4.0, 1e9), (2.5, 20.0, 1e9), (1.0, 1.0, 0.5)] {
            let target = Target::new(factor, longest, norm).unwrap();
            let grid = 2.0_f64.powi(places);
            let found = integers(&table, Some(target), radius, grid);
            // In units of 2^-27 of the steps of features.
            let range = 2.0_f64.powf(longest.log2().ceil().max(2.0));
            let whole: Vec<Vec<i128>> = table
                .numbers
                .chunks_exact(columns)
                .map(|row| {
                    let z = row[..columns - 1]
                        .iter()
                        .map(|x| (x.clamp(-4.0, 4.0) * 4096.0).round_ties_even() as i128);
                    let steps = 2.0_f64.powi(29) / range;
                    let last = ((row[columns - 1] * factor).clamp(-range, range) * steps).round_ties_even();
                    z.map(|z| z << 27).chain([(last * 2.0_f64.powi(39) / steps) as i128]).collect()
                })
                .collect();
            let entry = |k: usize, l: usize| {
                whole
                    .iter()
                    .map(|row| row[k] as f64 * 2.0_f64.powi(-39) * row[l] as f64 * 2.0_f64.powi(-39))
                    .sum::<f64>()
                    / count as f64
            };
            let norm_of = |end: usize| {
                (0..end)
                    .flat_map(|k| (0..end).map(move |l| (k, l)))
                    .map(|(k, l)| entry(k, l).powi(2))
                    .sum::<f64>()
                    .sqrt()
            };
            let weight = (norm / norm_of(columns - 1)).min(1.0);
            let scale = (weight / grid).min(f64::from(radius) / norm_of(columns));
            let (mut entries, mut squared) = (found.iter(), 0_u128);
            for k in 0..columns {
                for l in k..columns {
                    let (y, near) = (*entries.next().unwrap(), entry(k, l) * scale);
                    squared += u128::from(y.unsigned_abs()).pow(2) * (1 + u128::from(k != l));
                    assert!((y as f64 - near).abs() <= 2.0 + near.abs() * 1e-8, "{y} {near}");
                }
            }
            assert!(squared <= u128::from(radius).pow(2));
        }
    }
    assert!(Target::new(0.0, 1.0, 1.0).is_err());
    assert!(Target::new(1.0, 257.0, 1.0).is_err());
    assert!(Target::new(1.0, 1.0, f64::NAN).is_err());
}

/// The right side of normal equations: of rounded features and of targets as they are, weighted by features.
#[test]
fn products_of_features_and_targets() {
    let features = Table { columns: 2, numbers: vec![3.0, 1.0, -1.0, 1.0, 0.1, 0.0] };
    let joint = Table { columns: 3, numbers: vec![3.0, 1.0, 1e-9, -1.0, 1.0, 2.0, 0.1, 0.0, -8.0] };
    let rows = RowsOfUsers::new(&[0, 0, 2], 3, &Control::new()).unwrap();
    // The second moments of the first user are [[5, 1], [1, 1]].
    for (radius, weight) in [(100.0, 1.0), (0.5, 0.5 / 28_f64.sqrt())] {
        let products = Products::new(&features, &joint, &rows, radius).unwrap();
        let mut out = [9.0; 2];
        assert!(products.write(0, &mut out));
        let expected = [(3e-9 - 2.0) * (weight / 2.0), (1e-9 + 2.0) * (weight / 2.0)];
        assert!(out.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-15), "{out:?}");
        assert!(!products.write(1, &mut out));
        assert!(products.write(2, &mut out));
        assert_eq!(out, [410.0 / 4096.0 * -8.0, 0.0]);
    }
    assert!(Products::new(&features, &joint, &rows, 0.0).is_err());
    assert!(Products::new(&joint, &joint, &rows, 1.0).is_err());
}

#[test]
fn counts_of_levels_norms_and_spreads() {
    let table = Table { columns: 2, numbers: vec![3.0, 1.0, -1.0, 1.0, 0.5, 0.0] };
    let rows = RowsOfUsers::new(&[0, 0, 2], 3, &Control::new()).unwrap();
    let spreads = Spreads::new(&table, &rows, &[1.0, 0.0]).unwrap();
    let mut out = [9.0; 2];
    assert!(spreads.write(0, &mut out));
    assert_eq!(out, [2.0, 1.0]);
    assert!(!spreads.write(1, &mut out));
    let levels = [0.4, 0.5, 2.0, 0.0, 0.9, 1.0];
    let counts = counts_at_most(&spreads, &levels, &Control::new()).unwrap();
    assert_eq!(counts, [0, 1, 2, 1, 1, 2]);
    assert!(counts_at_most(&spreads, &[1.0; 3], &Control::new()).is_err());
    assert!(counts_at_most(&spreads, &[f64::NAN; 2], &Control::new()).is_err());
    // The second moments are [[5, 1], [1, 1]] and [[1/4, 0], [0, 0]]; who has no rows is within all radii.
    let moments = Moments::new(&table, &rows, None, None).unwrap();
    let radii = [0.24, 0.25, 28_f64.sqrt() - 1e-9, 28_f64.sqrt() + 1e-9];
    assert_eq!(moments.norm_counts(&radii, &Control::new()).unwrap(), [1, 2, 2, 3]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let table = table(2, 3);
    let rows = RowsOfUsers::new(&[0, 1, 1], 2, &Control::new()).unwrap();
    let control = Control::new();
    let moments = Moments::new(&table, &rows, None, None).unwrap();
    for (radius, grid) in [(0, 1.0), (1 << 31, 1.0), (5, 0.3), (5, 2.0_f64.powi(41)), (5, 2.0_f64.powi(-41))]
    {
        assert!(moments.clipped_sum(radius, grid, &control).is_err());
    }
    assert!(moments.norm_counts(&[f64::NAN], &control).is_err());
    let other = RowsOfUsers::new(&[0, 1], 2, &Control::new()).unwrap();
    assert!(Moments::new(&table, &other, None, None).is_err());
    assert!(Spreads::new(&table, &rows, &[0.0]).is_err());
    assert!(Joint::new(&table, Some(&[0.0]), Region::Cube(1.0), None).is_err());
    let units = Units { center: vec![0.0], factor: vec![1.0], constant: true, target: 0.0 };
    assert!(Joint::new(&table, None, Region::Cube(1.0), Some(&units)).is_err());
    let wide = Table { columns: 4097, numbers: vec![0.0; 4097] };
    let one = RowsOfUsers::new(&[0], 1, &Control::new()).unwrap();
    assert!(Moments::new(&wide, &one, None, None).is_err());
}
