//! The gradient of a shard: the elements of dense parameters, and the sparse rows of tables.

/// Some rows of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The numbers of the rows, ascending.
    pub numbers: Vec<u32>,
    /// The elements of these rows, row after row.
    pub values: Vec<f32>,
}

impl Rows {
    /// Adds other rows of the same width. A row that only one side has keeps its bits.
    fn add(&mut self, other: &Self, width: usize) {
        if self.numbers == other.numbers {
            add_floats(&mut self.values, &other.values);
            return;
        }
        let (own, own_values) = (std::mem::take(&mut self.numbers), std::mem::take(&mut self.values));
        self.numbers.reserve(own.len() + other.numbers.len());
        self.values.reserve(own_values.len() + other.values.len());
        let (mut left, mut right) = (0, 0);
        while left < own.len() || right < other.numbers.len() {
            let (l, r) = (own.get(left), other.numbers.get(right));
            let takes_left = l.is_some_and(|l| r.is_none_or(|r| l <= r));
            let takes_right = r.is_some_and(|r| l.is_none_or(|l| r <= l));
            let start = self.values.len();
            if takes_left {
                self.numbers.push(own[left]);
                self.values.extend_from_slice(&own_values[left * width..][..width]);
                left += 1;
            }
            if takes_right {
                let row = &other.values[right * width..][..width];
                match takes_left {
                    true => add_floats(&mut self.values[start..], row),
                    false => {
                        self.numbers.push(other.numbers[right]);
                        self.values.extend_from_slice(row);
                    }
                }
                right += 1;
            }
        }
    }
}

/// Adds floats element by element.
pub(crate) fn add_floats(sum: &mut [f32], other: &[f32]) {
    sum.iter_mut().zip(other).for_each(|(sum, x)| *sum += x);
}

/// The sizes of the gradients of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GradientShape {
    /// The number of elements of all dense parameters.
    pub dense: usize,
    /// The width of the rows of each table.
    pub widths: Vec<usize>,
}

/// The gradient of a shard, or of a node of the [tree](crate::tree).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gradient {
    /// The elements of all dense parameters, one parameter after the other.
    pub dense: Vec<f32>,
    /// The rows of each table that are not zero.
    pub tables: Vec<Rows>,
}

impl Gradient {
    /// Adds the gradient of the right sibling.
    pub fn add(&mut self, right: &Self, shape: &GradientShape) {
        add_floats(&mut self.dense, &right.dense);
        self.add_tables(&right.tables, shape);
    }

    /// Adds the rows of the right sibling.
    pub(crate) fn add_tables(&mut self, right: &[Rows], shape: &GradientShape) {
        for ((table, right), &width) in self.tables.iter_mut().zip(right).zip(&shape.widths) {
            table.add(right, width);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(numbers: &[u32], values: &[f32]) -> Rows {
        Rows { numbers: numbers.to_vec(), values: values.to_vec() }
    }

    #[test]
    fn rows_are_merged_in_order() {
        for (left, right, expected) in [
            (
                rows(&[1, 4], &[1.0, 2.0]),
                rows(&[0, 4, 9], &[5.0, 6.0, 7.0]),
                rows(&[0, 1, 4, 9], &[5.0, 1.0, 8.0, 7.0]),
            ),
            (rows(&[], &[]), rows(&[3], &[-0.0]), rows(&[3], &[-0.0])),
            (rows(&[3], &[2.0]), rows(&[], &[]), rows(&[3], &[2.0])),
            (rows(&[3], &[2.0]), rows(&[3], &[1.0]), rows(&[3], &[3.0])),
        ] {
            let mut sum = left;
            sum.add(&right, 1);
            assert_eq!(sum, expected);
            assert!(sum.values.iter().zip(&expected.values).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
        let mut wide = rows(&[0, 2], &[1.0, 2.0, 3.0, 4.0]);
        wide.add(&rows(&[1, 2], &[5.0, 6.0, 7.0, 8.0]), 2);
        assert_eq!(wide, rows(&[0, 1, 2], &[1.0, 2.0, 5.0, 6.0, 10.0, 12.0]));
    }
}
