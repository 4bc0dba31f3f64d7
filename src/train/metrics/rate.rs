//! How often something is so, and means of numbers.

/// How often something is so: accuracy, the rate of hits among the best k.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    hits: u64,
    total: u64,
}

impl Rate {
    /// Takes an observation.
    pub fn observe(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.total += 1;
    }

    /// How often it was so.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// How often it was observed.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The fraction.
    #[must_use]
    pub fn value(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.hits as f64 / self.total as f64 }
    }
}

/// A mean: of losses, say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    /// Takes a number.
    pub fn observe(&mut self, number: f64) {
        self.sum += number;
        self.count += 1;
    }

    /// The mean.
    #[must_use]
    pub fn value(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }
}

/// An exponential moving average, without a bias towards its beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    keep: f64,
    sum: f64,
    weight: f64,
}

impl Average {
    /// Every number weighs `keep` times what the one after it weighs.
    #[must_use]
    pub fn new(keep: f64) -> Self {
        Self { keep: keep.clamp(0.0, 1.0), sum: 0.0, weight: 0.0 }
    }

    /// Takes a number.
    pub fn observe(&mut self, number: f64) {
        self.sum = self.keep * self.sum + number;
        self.weight = self.keep * self.weight + 1.0;
    }

    /// The average.
    #[must_use]
    pub fn value(&self) -> f64 {
        if self.weight == 0.0 { 0.0 } else { self.sum / self.weight }
    }
}

/// How often each class was taken for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    classes: usize,
    counts: Vec<u64>,
}

impl Confusion {
    /// Nothing observed yet of so many classes.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self { classes, counts: vec![0; classes * classes] }
    }

    /// Takes an observation; classes that there are not are left out.
    pub fn observe(&mut self, gold: usize, predicted: usize) {
        if gold < self.classes && predicted < self.classes {
            self.counts[gold * self.classes + predicted] += 1;
        }
    }

    /// How often class `gold` was taken for class `predicted`.
    #[must_use]
    pub fn count(&self, gold: usize, predicted: usize) -> u64 {
        if gold < self.classes && predicted < self.classes {
            self.counts[gold * self.classes + predicted]
        } else {
            0
        }
    }

    /// The fraction of observations that are right.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        let total: u64 = self.counts.iter().sum();
        let right: u64 = (0..self.classes).map(|class| self.count(class, class)).sum();
        if total == 0 { 0.0 } else { right as f64 / total as f64 }
    }

    /// Of the observations taken for a class, the fraction that is of it; 0 if none was taken for it.
    #[must_use]
    pub fn precision(&self, class: usize) -> f64 {
        let predicted: u64 = (0..self.classes).map(|gold| self.count(gold, class)).sum();
        if predicted == 0 { 0.0 } else { self.count(class, class) as f64 / predicted as f64 }
    }

    /// Of the observations of a class, the fraction that was taken for it; 0 if there is none.
    #[must_use]
    pub fn recall(&self, class: usize) -> f64 {
        let gold: u64 = (0..self.classes).map(|predicted| self.count(class, predicted)).sum();
        if gold == 0 { 0.0 } else { self.count(class, class) as f64 / gold as f64 }
    }

    /// The harmonic mean of a class's precision and recall; 0 if both are.
    #[must_use]
    pub fn f1(&self, class: usize) -> f64 {
        let (precision, recall) = (self.precision(class), self.recall(class));
        if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) }
    }

    /// The mean of the classes' F1, each class alike however rare it is.
    #[must_use]
    pub fn macro_f1(&self) -> f64 {
        (0..self.classes).map(|class| self.f1(class)).sum::<f64>() / self.classes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_observed_is_zero_and_not_a_nan() {
        assert_eq!((Rate::default().value(), Mean::default().value()), (0.0, 0.0));
        assert_eq!((Average::new(0.9).value(), Confusion::new(3).accuracy()), (0.0, 0.0));
    }

    #[test]
    fn a_moving_average_of_equal_numbers_is_that_number_from_the_beginning() {
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
    fn classes_have_a_precision_and_a_recall_and_count_alike_in_their_mean() {
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
