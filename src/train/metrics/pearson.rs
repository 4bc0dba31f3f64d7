//! Pearson's correlation of two series.

/// Pearson's correlation, observed pair by pair.
///
/// Means and deviations are updated together (Welford's recurrence), so long series of large numbers
/// keep their precision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pearson {
    count: f64,
    mean: [f64; 2],
    /// The sums of squared deviations of both series, and of the product of the deviations.
    squares: [f64; 2],
    product: f64,
}

impl Pearson {
    /// Adds a pair.
    pub fn observe(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        let before = [x - self.mean[0], y - self.mean[1]];
        self.mean[0] += before[0] / self.count;
        self.mean[1] += before[1] / self.count;
        let after = [x - self.mean[0], y - self.mean[1]];
        self.squares[0] += before[0] * after[0];
        self.squares[1] += before[1] * after[1];
        self.product += before[0] * after[1];
    }

    /// Returns the correlation: 0 if a series is constant, NaN if a series holds a number that is not finite.
    #[must_use]
    pub fn value(&self) -> f64 {
        // One root each: the product of the sums overflows long before they do.
        let [x, y] = self.squares.map(f64::sqrt);
        if x == 0.0 || y == 0.0 { 0.0 } else { (self.product / x / y).clamp(-1.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> f64 {
        let mut pearson = Pearson::default();
        pairs.iter().for_each(|&(x, y)| pearson.observe(x, y));
        pearson.value()
    }

    #[test]
    fn lines_correlate_fully_and_constants_do_not() {
        assert!((of(&[(1.0, 1e9 + 2.0), (2.0, 1e9 + 4.0), (3.0, 1e9 + 6.0)]) - 1.0).abs() < 1e-9);
        assert!((of(&[(1.0, -1.0), (2.0, -2.0), (4.0, -4.0)]) + 1.0).abs() < 1e-12);
        assert_eq!(of(&[(1.0, 3.0), (2.0, 3.0)]), 0.0);
        assert_eq!(of(&[]), 0.0);
    }

    #[test]
    fn large_numbers_correlate_and_nan_stays_visible() {
        for scale in [1e-140, 1e-90, 1e90, 1e140] {
            let value = of(&[(scale, scale), (2.0 * scale, 3.0 * scale), (3.0 * scale, 5.0 * scale)]);
            assert!((value - 1.0).abs() < 1e-9, "{scale:e}: {value}");
        }
        assert!(of(&[(1.0, 2.0), (f64::NAN, 3.0), (2.0, 4.0)]).is_nan());
        assert!(of(&[(1.0, 2.0), (2.0, f64::INFINITY), (3.0, 4.0)]).is_nan());
    }

    #[test]
    fn a_worked_example_has_its_value() {
        // Deviations (-1.5, -0.5, 0.5, 1.5) and (-1, 1, -1, 1): 2 / sqrt(5 * 4).
        let value = of(&[(1.0, 1.0), (2.0, 3.0), (3.0, 1.0), (4.0, 3.0)]);
        assert!((value - 2.0 / 20f64.sqrt()).abs() < 1e-12, "{value}");
    }
}
