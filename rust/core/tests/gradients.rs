//! Mean gradients of users: by hand, the same bits on every kernel, and errors.
#![allow(clippy::unwrap_used)]

use userdp_core::{
    control::Control,
    simd::Kernel,
    vectors::{
        UserVectors,
        gradients::{GradientOptions, Gradients, Loss},
        joint::Units,
        means::Records,
        rows::RowsOfUsers,
        whitened::{Whitened, WhitenedGradients},
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

fn options(loss: Loss, theta: Vec<f64>, bound: f64, intercept: bool) -> GradientOptions {
    GradientOptions { loss, theta, bound, intercept, kernel: None }
}

#[test]
fn by_hand() {
    let table = Table { columns: 2, numbers: vec![3.0, 4.0, f64::NAN, 1.0, 0.0, 0.0] };
    let rows = RowsOfUsers::new(&[2, 0, 2], 3, &Control::new()).unwrap();
    let options = options(Loss::Squared(8.0), vec![1.0, 2.0, 0.5], 2.5, true);
    let gradients = Gradients::new(&table, &[1.0, f64::NAN, 0.0], &rows, &options).unwrap();
    let mut out = [7.0; 3];
    // The first row is clipped to (1.5, 2): the residual is 5.5 + 0.5 - 1.
    assert!(gradients.write(2, &mut out));
    assert_eq!(out, [5.0 * 1.5 / 2.0, 5.0, 2.75]);
    // NaN is 0, as a number and as a target.
    assert!(gradients.write(0, &mut out));
    assert_eq!(out, [0.0, 2.5, 2.5]);
    assert!(!gradients.write(1, &mut out));
    assert_eq!(out, [0.0; 3]);
}

#[test]
fn slopes() {
    assert_eq!(Loss::Logistic.slope(0.0, 1.0), -0.5);
    assert_eq!(Loss::Logistic.slope(1e300, -1.0), 1.0);
    assert_eq!(Loss::Logistic.slope(1e300, 1.0), 0.0);
    assert_eq!(Loss::Hinge(0.5).slope(0.75, 1.0), -0.5);
    assert_eq!(Loss::Hinge(0.5).slope(0.75, 0.0), 1.0);
    assert_eq!(Loss::Hinge(0.5).slope(1.5, 1.0), 0.0);
    assert_eq!(Loss::Squared(2.0).slope(5.0, 1.0), 2.0);
    assert_eq!(Loss::Squared(2.0).slope(0.0, 1.0), -1.0);
}

#[test]
fn kernels_agree_to_the_last_bit() {
    for columns in [1, 7, 8, 33, 64, 100] {
        // Numbers that do not add up exactly in any other order.
        let number = |i: usize| ((i * 7919 + 13) % 10_007) as f64 / 3.0e3 - 1.6;
        let table = Table { columns, numbers: (0..columns * 20).map(number).collect() };
        let targets: Vec<f64> = (0..20).map(number).collect();
        let rows = RowsOfUsers::new(&[0; 20], 1, &Control::new()).unwrap();
        for loss in [Loss::Logistic, Loss::Hinge(0.3), Loss::Squared(1.1)] {
            let theta: Vec<f64> = (0..=columns).map(|i| number(i + 5)).collect();
            let found = [Kernel::Scalar, Kernel::detect()].map(|kernel| {
                let mut options = options(loss, theta.clone(), 2.0, true);
                options.kernel = Some(kernel);
                let mut out = vec![0.0; columns + 1];
                assert!(Gradients::new(&table, &targets, &rows, &options).unwrap().write(0, &mut out));
                out.into_iter().map(f64::to_bits).collect::<Vec<_>>()
            });
            assert_eq!(found[0], found[1]);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let table = Table { columns: 2, numbers: vec![0.0; 4] };
    let rows = RowsOfUsers::new(&[0, 1], 2, &Control::new()).unwrap();
    let refused = |targets: &[f64], options: &GradientOptions, words: &str| {
        let error = Gradients::new(&table, targets, &rows, options).err().unwrap().to_string();
        assert!(error.starts_with(words), "{error}");
    };
    refused(&[0.0], &options(Loss::Logistic, vec![0.0; 2], 1.0, false), "X");
    refused(&[0.0; 2], &options(Loss::Logistic, vec![0.0; 2], 1.0, true), "theta");
    refused(&[0.0; 2], &options(Loss::Logistic, vec![f64::NAN; 2], 1.0, false), "theta");
    refused(&[0.0; 2], &options(Loss::Logistic, vec![0.0; 2], 0.0, false), "bound");
    refused(&[0.0; 2], &options(Loss::Hinge(0.0), vec![0.0; 2], 1.0, false), "width");
    refused(&[0.0; 2], &options(Loss::Squared(f64::INFINITY), vec![0.0; 2], 1.0, false), "residual");
}

#[test]
fn whitened_gradients_by_hand() {
    // In units the rows are (8, 1), (-2, 1) and (1, 1): the first has the weight 1/2.
    let table = Table { columns: 1, numbers: vec![2.0, -0.5, 0.25] };
    let control = Control::new();
    let rows = RowsOfUsers::new(&[1, 0, 1], 3, &control).unwrap();
    let units = Units { center: vec![0.0], factor: vec![4.0], constant: true, target: 0.0 };
    let identity = [1.0, 0.0, 0.0, 1.0];
    let whitened = Whitened::new(&table, &[1.0, 0.0, 0.0], &rows, &units, &identity, 1e9, &control).unwrap();
    let gradients = WhitenedGradients::new(&whitened, &[0.0, 0.0], 100.0).unwrap();
    let mut out = [7.0; 2];
    assert!(gradients.write(0, &mut out));
    assert_eq!(out, [-1.0, 0.5]);
    // -1/2 times 1/2 (8, 1), and 1/2 times (1, 1).
    assert!(gradients.write(1, &mut out));
    assert_eq!(out, [-0.75, 0.125]);
    assert!(!gradients.write(2, &mut out));
    assert_eq!(out, [0.0; 2]);
    // No row is longer than 1, by its length and not by its gradient.
    let short = WhitenedGradients::new(&whitened, &[0.0, 0.0], 1.0).unwrap();
    assert!(short.write(0, &mut out));
    assert!((out[0] + 1.0 / 5_f64.sqrt()).abs() < 1e-15);
    // Lengths are sqrt(65) / 2, sqrt(5) and sqrt(2); who has no rows has all of them within.
    let shares = whitened.shares_within(&[1.0, 2.0, 3.0, 5.0], &control).unwrap();
    assert_eq!(shares, [1024, 1536, 2560, 3072]);
    assert!(whitened.shares_within(&[2.0, 1.0], &control).is_err());
    assert!(WhitenedGradients::new(&whitened, &[0.0], 1.0).is_err());
    assert!(WhitenedGradients::new(&whitened, &[0.0, 0.0], 0.0).is_err());
    for (labels, matrix) in [(&[1.0][..], &identity[..]), (&[1.0; 3], &[1.0; 3])] {
        assert!(Whitened::new(&table, labels, &rows, &units, matrix, 1.0, &control).is_err());
    }
}
