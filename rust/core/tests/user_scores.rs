//! Scores over finite classes against their definitions, on every kernel.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::unwrap_used
)]

use proptest::prelude::*;
use userdp_core::{
    Error,
    control::Control,
    score::{
        counts::Mistakes,
        pairwise::{Count, clipped_pairwise_scores, scores_with},
        predictions::Predictions,
        psi::PsiTable,
        scheffe::Scheffe,
        surrogate::Surrogate,
        user_rows::UserRows,
    },
    simd::Kernel,
};

/// The largest over b != a of the sum of clipped differences; 0 for none.
fn pairwise<T: Copy + Into<i128>>(counts: &[T], users: usize, tau: u64) -> Vec<i64> {
    let tau = i128::from(tau);
    let rows: Vec<_> = counts.chunks(users).collect();
    let sum = |a: &[T], b: &[T]| -> i128 {
        a.iter().zip(b).map(|(&a, &b)| (a.into() - b.into()).clamp(-tau, tau)).sum()
    };
    let best = |a: usize| (0..rows.len()).filter(|&b| b != a).map(|b| sum(rows[a], rows[b])).max();
    (0..rows.len()).map(|a| best(a).unwrap_or(0) as i64).collect()
}

/// Mixes words: numbers for tests.
fn words(seed: u64) -> impl Iterator<Item = u64> {
    (seed..).map(|index| {
        let mut word = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word ^= word >> 32;
        word = word.wrapping_mul(0xd6e8_feb8_6659_fd93);
        word ^ word >> 32
    })
}

fn check_pairwise<T: Count + Into<i128>>(ends: [T; 2], number: impl Fn(u64) -> T) {
    for (candidates, users) in
        [(1, 3), (2, 1), (2, 63), (3, 64), (4, 65), (5, 4096), (9, 8191), (17, 4100), (131, 33), (260, 5)]
    {
        for tau in [1, 2, 7, 127, 128, 255, 256, 40_000, u64::from(u32::MAX), u64::MAX] {
            let mut numbers = words(tau >> 1);
            let mut next = || numbers.next().unwrap();
            let wide: Vec<T> = (0..candidates * users).map(|_| number(next())).collect();
            let narrow: Vec<T> = (0..candidates * users).map(|_| number(next() % 17)).collect();
            let extreme: Vec<T> = (0..candidates * users).map(|_| ends[(next() % 2) as usize]).collect();
            for counts in [wide, narrow, extreme] {
                let expected = pairwise(&counts, users, tau);
                for kernel in Kernel::supported() {
                    let found = scores_with(kernel, &counts, users, tau, &Control::new()).unwrap();
                    assert_eq!(found, expected, "{kernel:?}, {candidates} x {users}, tau = {tau}");
                }
            }
        }
    }
}

#[test]
fn pairwise_scores_of_every_type_are_the_definition() {
    check_pairwise([i8::MIN, i8::MAX], |word| word as i8);
    check_pairwise([u8::MIN, u8::MAX], |word| word as u8);
    check_pairwise([i16::MIN, i16::MAX], |word| word as i16);
    check_pairwise([u16::MIN, u16::MAX], |word| word as u16);
    check_pairwise([i32::MIN, i32::MAX], |word| word as i32);
    check_pairwise([u32::MIN, u32::MAX], |word| word as u32);
}

#[test]
fn sums_of_long_rows_of_extremes_do_not_overflow() {
    // The largest sums of 16 bits: 32-bit lanes would overflow if they were added up over more than a block.
    let users = 300_000;
    let counts = [vec![i16::MIN; users], vec![i16::MAX; users]].concat();
    let sum = 65_535 * users as i64;
    for kernel in Kernel::supported() {
        assert_eq!(scores_with(kernel, &counts, users, 1 << 20, &Control::new()).unwrap(), [-sum, sum]);
    }
}

#[test]
fn every_pair_of_many_candidates_is_seen() {
    // Candidate a has the count a mod 5, and only one of them has 5.
    let counts: Vec<u8> = (0..3001).map(|a| if a == 1234 { 5 } else { (a % 5) as u8 }).collect();
    let expected: Vec<i64> = counts.iter().map(|&count| i64::from(count.min(3))).collect();
    assert_eq!(clipped_pairwise_scores(&counts, 1, 3, &Control::new()).unwrap(), expected);
}

#[test]
fn bad_matrices_are_refused() {
    let scores = |counts: &[i8], users, tau| clipped_pairwise_scores(counts, users, tau, &Control::new());
    assert!(matches!(scores(&[], 1, 1), Err(Error::InvalidArgument { argument: "counts", .. })));
    assert!(matches!(scores(&[1, 2, 3], 2, 1), Err(Error::InvalidArgument { argument: "counts", .. })));
    assert!(matches!(scores(&[1, 2], 1, 0), Err(Error::InvalidArgument { argument: "tau", .. })));
    let canceled = Control::new();
    canceled.cancel();
    assert_eq!(clipped_pairwise_scores(&[1i8; 8], 2, 1, &canceled), Err(Error::Canceled));
}

/// Rows of users, and what hypotheses say about points.
#[derive(Debug, Clone)]
struct Task {
    m: u32,
    points: usize,
    users: usize,
    point_of_row: Vec<u32>,
    user_of_row: Vec<u32>,
    labels: Vec<u8>,
    hypotheses: Vec<Vec<u8>>,
    scored: Vec<Vec<u8>>,
}

impl Task {
    fn new(seed: u64, m: u32, users: usize, hypotheses: usize) -> Self {
        let mut numbers = words(seed);
        let mut below = |bound: u64| numbers.next().unwrap() % bound;
        let points = 1 + below(9) as usize;
        let mut user_of_row: Vec<u32> = Vec::new();
        for user in 0..users as u32 {
            // Some users have all rows, some none, and some a few.
            let rows = [0, u64::from(m), below(u64::from(m) + 1)][below(3) as usize];
            user_of_row.extend((0..rows).map(|_| user));
        }
        for place in (1..user_of_row.len()).rev() {
            user_of_row.swap(place, below(place as u64 + 1) as usize);
        }
        let point_of_row = user_of_row.iter().map(|_| below(points as u64) as u32).collect();
        let labels = user_of_row.iter().map(|_| below(2) as u8).collect();
        let mut class = |size| (0..size).map(|_| (0..points).map(|_| below(2) as u8).collect()).collect();
        let (hypotheses, scored) = (class(hypotheses), class(3));
        Self { m, points, users, point_of_row, user_of_row, labels, hypotheses, scored }
    }

    /// Scaled disagreements of a hypothesis with labels on a user's rows.
    fn scaled(&self, user: usize, differs: impl Fn(usize) -> bool) -> u64 {
        let rows: Vec<usize> =
            (0..self.labels.len()).filter(|&row| self.user_of_row[row] as usize == user).collect();
        let wrong = rows.iter().filter(|&&row| differs(row)).count();
        if rows.is_empty() { 0 } else { (wrong as u64 * u64::from(self.m)).div_ceil(rows.len() as u64) }
    }

    fn says(&self, hypothesis: &[u8], row: usize) -> u8 {
        hypothesis[self.point_of_row[row] as usize]
    }

    fn rows(&self) -> UserRows {
        UserRows::new(&self.point_of_row, &self.user_of_row, self.users, self.m).unwrap()
    }
}

fn packed(class: &[Vec<u8>]) -> Predictions {
    Predictions::new(&class.concat(), class.len(), &Control::new()).unwrap()
}

#[test]
fn mistakes_are_the_definition_on_every_kernel() {
    for (seed, (m, users, hypotheses)) in [
        (1, 5, 1),
        (2, 700, 3),
        (3, 17, 255),
        (7, 40, 257),
        (8, 30, 520),
        (100, 9, 70),
        (300, 4, 2),
        (70_000, 2, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let task = Task::new(1000 * seed as u64, m, users, hypotheses);
        let control = Control::new();
        let (predictions, rows) = (packed(&task.hypotheses), task.rows());
        let labels = rows.ordered(&task.labels).unwrap();
        let expected: Vec<Vec<u64>> = (task.hypotheses.iter())
            .map(|h| {
                (0..users)
                    .map(|user| task.scaled(user, |row| task.says(h, row) != task.labels[row]))
                    .collect()
            })
            .collect();
        for kernel in Kernel::supported() {
            let mistakes = Mistakes::new(&predictions, &rows, &labels, kernel).unwrap();
            let counts: Vec<u32> = mistakes.counts(true, &control).unwrap();
            assert!(counts.iter().map(|&count| u64::from(count)).eq(expected.concat()));
            let narrow = mistakes.counts::<u8>(true, &control);
            assert_eq!(narrow.is_ok(), m < 256);
            let thresholds: Vec<u32> = if m < 200 { (0..=m).collect() } else { vec![0, 1, m / 2, m - 1, m] };
            let mut least = Vec::new();
            for &t in &thresholds {
                let above: Vec<i64> = (expected.iter())
                    .map(|counts| counts.iter().filter(|&&count| count > t.into()).count() as i64)
                    .collect();
                assert_eq!(mistakes.above(t, &control).unwrap(), above, "{kernel:?}, m = {m}, t = {t}");
                least.push(*above.iter().min().unwrap());
            }
            if m < 200 {
                assert_eq!(mistakes.least_above(&control).unwrap(), least[..m as usize]);
            }
        }
    }
}

#[test]
fn more_users_than_a_task_and_the_digits_hold() {
    let users = 5000;
    let rows = UserRows::new(&vec![0; users], &(0..users as u32).collect::<Vec<_>>(), users, 1).unwrap();
    let predictions = Predictions::new(&[1, 0], 2, &Control::new()).unwrap();
    let labels = vec![0; users];
    for kernel in Kernel::supported() {
        let mistakes = Mistakes::new(&predictions, &rows, &labels, kernel).unwrap();
        assert_eq!(mistakes.above(0, &Control::new()).unwrap(), [users as i64, 0]);
    }
}

#[test]
fn surrogate_scores_are_the_definition_on_every_kernel() {
    for (seed, (m, users, hypotheses)) in
        [(1, 6, 1), (2, 9, 4), (4, 12, 65), (9, 7, 300)].into_iter().enumerate()
    {
        let task = Task::new(77 + 1000 * seed as u64, m, users, hypotheses);
        let (class, scored, rows) = (packed(&task.hypotheses), packed(&task.scored), task.rows());
        let count = |limit: u32, differs: &dyn Fn(usize) -> bool| -> i64 {
            (0..users).filter(|&user| task.scaled(user, differs) > limit.into()).count() as i64
        };
        for (t, s) in [(0, 0), (m - 1, 0), (0, m - 1), (m / 2, m / 2)] {
            let expected: Vec<i64> = (task.scored.iter())
                .map(|h| {
                    let sums = task.hypotheses.iter().map(|c| {
                        count(t, &|row| task.says(c, row) != task.labels[row])
                            + count(s, &|row| task.says(c, row) != task.says(h, row))
                    });
                    sums.min().unwrap()
                })
                .collect();
            for kernel in Kernel::supported() {
                let surrogate = Surrogate { class: &class, scored: &scored, rows: &rows, t, s };
                assert_eq!(surrogate.scores(&task.labels, kernel, &Control::new()).unwrap(), expected);
            }
        }
        let surrogate = Surrogate { class: &class, scored: &scored, rows: &rows, t: m, s: 0 };
        assert!(surrogate.scores(&task.labels, Kernel::Scalar, &Control::new()).is_err());
    }
}

#[test]
fn psi_scores_are_the_definition_on_every_kernel() {
    for (candidates, grid) in [(1, 5), (2, 1), (17, 1000), (18, 1 << 40)] {
        let task = Task::new(candidates as u64, 5, 30, 1);
        let mut numbers = words(9);
        let psi: Vec<i64> = (0..candidates * candidates * task.points)
            .map(|_| (numbers.next().unwrap() % (2 * grid + 1)) as i64 - grid as i64)
            .collect();
        let table = PsiTable { psi: &psi, candidates, points: task.points };
        let points_of = |user: u32| -> Vec<usize> {
            let rows = (0..task.labels.len()).filter(|&row| task.user_of_row[row] == user);
            rows.map(|row| task.point_of_row[row] as usize).collect()
        };
        let points: Vec<Vec<usize>> = (0..task.users as u32).map(points_of).collect();
        for tau in [1, grid as i64, 3 * grid as i64, i64::MAX] {
            let sum = |a: usize, b: usize| -> i64 {
                let first = (a * candidates + b) * task.points;
                let own = |points: &Vec<usize>| points.iter().map(|point| psi[first + point]).sum::<i64>();
                points.iter().map(|points| own(points).clamp(-tau, tau)).sum()
            };
            let best = |a: usize| (0..candidates).filter(|&b| b != a).map(|b| sum(a, b)).max();
            let expected: Vec<i64> = (0..candidates).map(|a| best(a).unwrap_or(0)).collect();
            for kernel in Kernel::supported() {
                assert_eq!(table.scores(&task.rows(), tau, kernel, &Control::new()).unwrap(), expected);
            }
        }
    }
}

/// The scores of Scheffé sets, pair by pair and user by user.
fn scheffe(masses: &[Vec<i64>], users: &[Vec<u32>], tau: i64) -> Vec<i64> {
    let unit: i64 = masses[0].iter().sum();
    let sum = |a: &[i64], b: &[i64]| -> i64 {
        let inside: i64 = a.iter().zip(b).filter(|(a, b)| a > b).map(|(a, _)| a).sum();
        let own = |user: &[u32]| -> i64 {
            (a.iter().zip(b).zip(user))
                .map(|((a, b), &count)| i64::from(count) * (inside - if a > b { unit } else { 0 }))
                .sum()
        };
        users.iter().map(|user| own(user).clamp(-tau, tau)).sum()
    };
    let best = |a: usize| (0..masses.len()).filter(|&b| b != a).map(|b| sum(&masses[a], &masses[b])).max();
    (0..masses.len()).map(|a| best(a).unwrap_or(0)).collect()
}

proptest! {
    #[test]
    fn scheffe_scores_are_the_definition(seed in 0u64..1000, candidates in 1usize..12, size in 0usize..6, users in 0usize..40) {
        let symbols = [1, 2, 5, 64, 65, 300][size];
        let mut numbers = words(seed << 20);
        let mut below = |bound: u64| numbers.next().unwrap() % bound;
        let masses: Vec<Vec<i64>> = (0..candidates)
            .map(|_| {
                let mut masses = vec![0; symbols];
                for _ in 0..20 {
                    masses[below(symbols as u64) as usize] += 1;
                }
                masses
            })
            .collect();
        let histograms: Vec<Vec<u32>> =
            (0..users).map(|_| (0..symbols).map(|_| [0, 0, 1, 2][below(4) as usize]).collect()).collect();
        for tau in [1, 20, 47, i64::MAX] {
            let expected = scheffe(&masses, &histograms, tau);
            let (masses, histograms) = (masses.concat(), histograms.concat());
            let scheffe = Scheffe { masses: &masses, histograms: &histograms, symbols };
            for kernel in Kernel::supported() {
                prop_assert_eq!(&scheffe.scores(tau, kernel, &Control::new()).unwrap(), &expected);
            }
        }
    }
}

#[test]
fn bad_tables_are_refused() {
    let control = Control::new();
    let scheffe = |masses: &[i64], histograms: &[u32], symbols, tau| {
        Scheffe { masses, histograms, symbols }.scores(tau, Kernel::Scalar, &control)
    };
    assert_eq!(scheffe(&[1, 1, 2, 0], &[1, 0], 2, 1), Ok(vec![1, 0]));
    assert!(scheffe(&[1, 1, 2, 1], &[1, 0], 2, 1).is_err());
    assert!(scheffe(&[1, 1, 3, -1], &[1, 0], 2, 1).is_err());
    assert!(scheffe(&[0, 0], &[1, 0], 2, 1).is_err());
    assert!(scheffe(&[], &[1, 0], 2, 1).is_err());
    assert!(scheffe(&[1, 1], &[], 0, 1).is_err());
    assert!(scheffe(&[1, 1], &[1, 0], 2, 0).is_err());
    // All pairs of so many would fill 3.5 gigabytes with their sets of 1024 symbols.
    let many = [vec![1i64], vec![0; 1023]].concat().repeat(5000);
    assert!(matches!(scheffe(&many, &[0; 1024], 1024, 1), Err(Error::TooLarge { .. })));
    assert!(matches!(scheffe(&[i64::MAX, 0, 0, i64::MAX], &[1, 1], 2, 1 << 40), Err(Error::TooLarge { .. })));
    let rows = UserRows::new(&[0], &[0], 1, 1).unwrap();
    let psi = |psi: &[i64], tau| {
        PsiTable { psi, candidates: 2, points: 1 }.scores(&rows, tau, Kernel::Scalar, &control)
    };
    assert_eq!(psi(&[9, 1, -1, 9], 5), Ok(vec![1, -1]));
    assert!(psi(&[9, 1, -1], 5).is_err());
    assert!(psi(&[9, 1, -1, 9], 0).is_err());
    let nobody = UserRows::new(&[], &[], 1, 1).unwrap();
    let nothing = PsiTable { psi: &[], candidates: 2, points: 0 };
    assert!(nothing.scores(&nobody, 5, Kernel::Scalar, &control).is_err());
    assert!(matches!(psi(&[9, i64::MIN, -1, 9], 5), Err(Error::TooLarge { .. })));
    assert!(UserRows::new(&[0, 0], &[0, 0], 1, 1).is_err());
    assert!(UserRows::new(&[0], &[1], 1, 1).is_err());
    assert!(UserRows::new(&[0], &[0], 1, 0).is_err());
    assert!(UserRows::new(&[0, 0], &[0], 1, 2).is_err());
    assert!(Predictions::new(&[2], 1, &control).is_err());
    assert!(Predictions::new(&[1, 1, 1], 2, &control).is_err());
}
