//! Rates, means and confusion counts.

/// A rate of hits, for example accuracy or the hits among the best k.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    hits: u64,
    total: u64,
}

impl Rate {
    /// Adds an observation.
    pub fn observe(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.total += 1;
    }

    /// Returns the number of hits.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Returns the number of observations.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the fraction of hits.
    #[must_use]
    pub fn value(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.hits as f64 / self.total as f64 }
    }
}

/// A mean, for example of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    /// Adds a number.
    pub fn observe(&mut self, number: f64) {
        self.sum += number;
        self.count += 1;
    }

    /// Returns the mean.
    #[must_use]
    pub fn value(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }
}

/// An exponential moving average, corrected for its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    keep: f64,
    sum: f64,
    weight: f64,
}

impl Average {
    /// Creates an average in which every number weighs `keep` times its successor.
    #[must_use]
    pub fn new(keep: f64) -> Self {
        Self { keep: keep.clamp(0.0, 1.0), sum: 0.0, weight: 0.0 }
    }

    /// Adds a number.
    pub fn observe(&mut self, number: f64) {
        self.sum = self.keep * self.sum + number;
        self.weight = self.keep * self.weight + 1.0;
    }

    /// Returns the average.
    #[must_use]
    pub fn value(&self) -> f64 {
        if self.weight == 0.0 { 0.0 } else { self.sum / self.weight }
    }
}

/// Counts predictions per class and predicted class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    classes: usize,
    counts: Vec<u64>,
}

impl Confusion {
    /// Creates empty counts for this many classes.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self { classes, counts: vec![0; classes * classes] }
    }

    /// Adds an observation. Unknown classes are ignored.
    pub fn observe(&mut self, gold: usize, predicted: usize) {
        if gold < self.classes && predicted < self.classes {
            self.counts[gold * self.classes + predicted] += 1;
        }
    }

    /// Counts the observations of class `gold` predicted as class `predicted`.
    #[must_use]
    pub fn count(&self, gold: usize, predicted: usize) -> u64 {
        if gold < self.classes && predicted < self.classes {
            self.counts[gold * self.classes + predicted]
        } else {
            0
        }
    }

    /// Returns the fraction of right predictions.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        let total: u64 = self.counts.iter().sum();
        let right: u64 = (0..self.classes).map(|class| self.count(class, class)).sum();
        if total == 0 { 0.0 } else { right as f64 / total as f64 }
    }

    /// Returns the fraction of right ones among the predictions of a class; 0 without predictions.
    #[must_use]
    pub fn precision(&self, class: usize) -> f64 {
        let predicted: u64 = (0..self.classes).map(|gold| self.count(gold, class)).sum();
        if predicted == 0 { 0.0 } else { self.count(class, class) as f64 / predicted as f64 }
    }

    /// Returns the fraction of right ones among the observations of a class; 0 without observations.
    #[must_use]
    pub fn recall(&self, class: usize) -> f64 {
        let gold: u64 = (0..self.classes).map(|predicted| self.count(class, predicted)).sum();
        if gold == 0 { 0.0 } else { self.count(class, class) as f64 / gold as f64 }
    }

    /// Returns the harmonic mean of a class's precision and recall; 0 if both are 0.
    #[must_use]
    pub fn f1(&self, class: usize) -> f64 {
        let (precision, recall) = (self.precision(class), self.recall(class));
        if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) }
    }

    /// Returns the unweighted mean of the classes' F1.
    #[must_use]
    pub fn macro_f1(&self) -> f64 {
        (0..self.classes).map(|class| self.f1(class)).sum::<f64>() / self.classes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_without_observations_are_zero() {
        assert_eq!((Rate::default().value(), Mean::default().value()), (0.0, 0.0));
        assert_eq!((Average::new(0.9).value(), Confusion::new(3).accuracy()), (0.0, 0.0));
    }

    #[test]
    fn the_moving_average_of_equal_numbers_is_that_number_from_the_start() {
        let mut average = Average::new(0.9);
        for _ in 0..5 {
            average.observe(4.0);
            assert!((average.value() - 4.0).abs() < 1e-12);
        }
        average.observe(5.0);
        assert!(average.value() > 4.1 && average.value() < 4.5);
    }

    #[test]
    fn confusions_are_counted_by_gold_and_prediction() {
        let mut confusion = Confusion::new(2);
        [(0, 0), (0, 1), (1, 1), (5, 0)].into_iter().for_each(|(gold, found)| confusion.observe(gold, found));
        assert_eq!((confusion.count(0, 1), confusion.count(1, 0), confusion.count(5, 0)), (1, 0, 0));
        assert!((confusion.accuracy() - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn macro_f1_weighs_all_classes_equally() {
        // Of gold 0, 0, 0, 1, 1, 2 the prediction was 0, 0, 1, 1, 0, 0.
        let mut confusion = Confusion::new(4);
        let pairs = [(0, 0), (0, 0), (0, 1), (1, 1), (1, 0), (2, 0)];
        pairs.into_iter().for_each(|(gold, found)| confusion.observe(gold, found));
        assert_eq!([0, 1, 2, 9].map(|class| confusion.precision(class)), [0.5, 0.5, 0.0, 0.0]);
        assert_eq!([0, 1, 2, 9].map(|class| confusion.recall(class)), [2.0 / 3.0, 0.5, 0.0, 0.0]);
        assert!((confusion.f1(0) - 4.0 / 7.0).abs() < 1e-12 && confusion.f1(3) == 0.0);
        assert!((confusion.macro_f1() - (4.0 / 7.0 + 0.5) / 4.0).abs() < 1e-12);
        assert_eq!(Confusion::new(0).macro_f1(), 0.0);
    }
}
