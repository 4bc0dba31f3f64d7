//! Axes with round ticks.

/// The range and the ticks of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The number at its lower end.
    pub low: f64,
    /// The number at its upper end.
    pub high: f64,
    step: f64,
}

impl Axis {
    /// An axis over the values with about `intervals` intervals. It starts at 0, unless a value is negative or all lie
    /// in its upper half, where it would hide their differences.
    pub fn of(values: impl Iterator<Item = f64>, intervals: usize) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return Self { low: 0.0, high: 1.0, step: 0.5 };
        }
        // Numbers that hardly differ would have ticks that their digits cannot tell apart.
        let differ = high - low > high * 1e-6;
        let low = if low > high / 2.0 && differ { low } else { low.min(0.0) };
        let high = if high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / intervals.max(1) as f64);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    /// Every tick with its label, ascending. All labels have equally many decimals.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let decimals = (-self.step.log10().floor()).max(0.0) as usize;
        let count = ((self.high - self.low) / self.step).round() as usize;
        let tick = |number: usize| {
            let value = self.low + number as f64 * self.step;
            (value, format!("{value:.decimals$}"))
        };
        (0..=count).map(tick).collect()
    }

    /// The position of a value: 0 at the lower end, 1 at the upper.
    pub fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `least`.
pub fn round_step(least: f64) -> f64 {
    let least = least.max(1e-12);
    let power = 10f64.powf(least.log10().floor());
    let digits = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power);
    digits.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64]) -> Vec<String> {
        let axis = Axis::of(values.iter().copied(), 4);
        axis.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_start_at_zero() {
        assert_eq!(labels(&[45.0, 92.0]), ["0", "50", "100"]);
        assert_eq!(labels(&[0.56, 2.13]), ["0", "1", "2", "3"]);
        assert_eq!(labels(&[0.2, 0.775]), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(labels(&[-0.1, 0.775]), ["-0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(labels(&[0.002]), ["0.0000", "0.0005", "0.0010", "0.0015", "0.0020"]);
    }

    #[test]
    fn near_values_have_an_axis_of_their_own() {
        assert_eq!(labels(&[91.2, 94.6]), ["91", "92", "93", "94", "95"]);
        assert_eq!(labels(&[0.56, 0.61]), ["0.56", "0.58", "0.60", "0.62"]);
    }

    #[test]
    fn constant_missing_and_infinite_values_have_an_axis() {
        let hardly = [1e6, 1e6f64.next_up()];
        for values in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY], &[3.0, 3.0], &hardly] {
            let axis = Axis::of(values.iter().copied(), 4);
            assert!(axis.low < axis.high && axis.ticks().len() >= 2, "{axis:?}");
            assert!((0.0..=1.0).contains(&axis.share(axis.low)));
        }
    }
}
