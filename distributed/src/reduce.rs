//! The sum of the gradients of all ranks, in the order of the [tree].
//!
//! The dense part is cut into buckets, and each bucket into one slice per rank. A rank receives its slice of every node of
//! the tree from the other ranks, adds them, and sends the sum to all. Each rank therefore sends and receives as much as
//! with a ring, times the number of nodes per rank. Of tables, all ranks receive the rows of all nodes.

use crate::gradient::{Gradient, GradientShape, Rows, add_floats};
use crate::group::{Bucket, BucketWork, Group, GroupError};
use crate::tree::{self, Given};
use std::ops::Range;

/// The number of floats of a bucket: 1 MiB. A message of this size reaches nearly the full bandwidth of most networks.
const BUCKET: usize = 1 << 18;

/// The memory of the messages, which one sum after the other uses. Fresh memory costs the system about as much as moving it.
#[derive(Debug, Default)]
pub struct Buckets(Vec<Bucket>);

/// The gradients of this rank's nodes of the tree: of the [cover](tree::cover) of its [leaves](tree::leaves_of). They may be
/// computed while the ranks exchange others.
pub trait Nodes {
    /// The number of nodes.
    fn count(&self) -> usize;

    /// Computes some elements of the dense part of all nodes. A failure is kept for [`tables`](Self::tables), because the other ranks
    /// wait for messages of the usual lengths.
    fn compute(&mut self, elements: Range<usize>);

    /// Appends elements that were computed.
    fn append(&self, node: usize, elements: Range<usize>, to: &mut Vec<f32>);

    /// Computes what is left. Returns the tables of each node.
    ///
    /// # Errors
    /// The message of the first failure.
    fn tables(&mut self) -> Result<Vec<Vec<Rows>>, String>;
}

/// Gradients that are computed already.
impl Nodes for Vec<Gradient> {
    fn count(&self) -> usize {
        self.len()
    }

    fn compute(&mut self, _: Range<usize>) {}

    fn append(&self, node: usize, elements: Range<usize>, to: &mut Vec<f32>) {
        to.extend_from_slice(&self[node].dense[elements]);
    }

    fn tables(&mut self) -> Result<Vec<Vec<Rows>>, String> {
        Ok(self.iter_mut().map(|node| std::mem::take(&mut node.tables)).collect())
    }
}

/// Adds the gradients of the nodes of all ranks, of which this rank has its `own`. All ranks receive the same `sum`, which
/// replaces the former contents.
///
/// # Errors
/// A rank ended, failed to compute, or sent a malformed message. All ranks get the error of a failure.
pub fn reduce(
    group: &mut dyn Group,
    leaves: usize,
    own: &mut dyn Nodes,
    shape: &GradientShape,
    Buckets(buckets): &mut Buckets,
    sum: &mut Gradient,
) -> Result<(), GroupError> {
    let (rank, ranks) = (group.rank(), group.size());
    sum.dense.clear();
    if ranks == 1 {
        // The cover of all leaves is the root.
        own.compute(0..shape.dense);
        own.append(0, 0..shape.dense, &mut sum.dense);
        let tables = own.tables().map_err(|message| GroupError::Failed { rank, message })?;
        sum.tables = tables.into_iter().next().unwrap_or_default();
        return Ok(());
    }
    let nodes: Vec<Vec<Range<usize>>> =
        (0..ranks).map(|rank| tree::cover(leaves, tree::leaves_of(rank, ranks, leaves))).collect();
    debug_assert_eq!(nodes[rank].len(), own.count());
    let slices = fit(buckets, rank, own.count(), &nodes, shape.dense);
    group.exchange(buckets, &mut Dense { own, slices: &slices, leaves, nodes: &nodes })?;
    buckets.iter().for_each(|bucket| sum.dense.extend_from_slice(&bucket.whole));
    sum.tables = reduce_tables(group, leaves, &nodes, own.tables(), shape)?;
    Ok(())
}

/// Part `number` of `count` nearly equal parts of a range.
fn part(range: &Range<usize>, number: usize, count: usize) -> Range<usize> {
    let at = |number: usize| range.start + range.len() * number / count;
    at(number)..at(number + 1)
}

/// Sizes the buckets. Returns the slice of each rank in each bucket.
fn fit(
    buckets: &mut Vec<Bucket>,
    rank: usize,
    own: usize,
    nodes: &[Vec<Range<usize>>],
    elements: usize,
) -> Vec<Vec<Range<usize>>> {
    let ranks = nodes.len();
    let ranges = (0..elements).step_by(BUCKET).map(|start| start..elements.min(start + BUCKET));
    let slices = ranges.map(|range| (0..ranks).map(|rank| part(&range, rank, ranks)).collect());
    let slices: Vec<Vec<Range<usize>>> = slices.collect();
    buckets.resize_with(slices.len(), Bucket::default);
    for (bucket, slices) in buckets.iter_mut().zip(&slices) {
        let width = slices[rank].len();
        bucket.send_counts = slices.iter().map(|slice| own * slice.len()).collect();
        bucket.receive_counts = nodes.iter().map(|nodes| nodes.len() * width).collect();
        bucket.receive.resize(bucket.receive_counts.iter().sum(), 0.0);
        bucket.own.clear();
        bucket.own.resize(width, 0.0);
        bucket.whole_counts = slices.iter().map(Range::len).collect();
        bucket.whole.resize(bucket.whole_counts.iter().sum(), 0.0);
    }
    slices
}

/// The work on the dense part.
struct Dense<'a> {
    own: &'a mut dyn Nodes,
    /// For each bucket, the slice of each rank.
    slices: &'a [Vec<Range<usize>>],
    leaves: usize,
    nodes: &'a [Vec<Range<usize>>],
}

impl BucketWork for Dense<'_> {
    fn fill(&mut self, number: usize, bucket: &mut Bucket) {
        let slices = &self.slices[number];
        self.own.compute(slices[0].start..slices[slices.len() - 1].end);
        bucket.send.clear();
        for slice in slices {
            (0..self.own.count()).for_each(|node| self.own.append(node, slice.clone(), &mut bucket.send));
        }
    }

    fn add(&mut self, received: &[f32], sum: &mut [f32]) {
        if sum.is_empty() {
            return;
        }
        let mut left = self.nodes.iter().flatten().zip(received.chunks_exact(sum.len())).peekable();
        let mut given = |node: &Range<usize>| match left.next_if(|(next, _)| *next == node) {
            Some((_, slice)) => Ok(Given::Sum(slice.to_vec())),
            None if node.len() > 1 => Ok(Given::Children),
            None => Err(()),
        };
        let mut add = |left: &mut Vec<f32>, right: Vec<f32>| add_floats(left, &right);
        if let Ok(added) = tree::sum(0..self.leaves, &mut given, &mut add) {
            sum.copy_from_slice(&added);
        }
    }
}

/// The first byte of a message with the rows of tables.
const ROWS: u8 = 0;
/// The first byte of a message about a failure.
const FAILURE: u8 = 1;

/// Adds the tables of all ranks. Every rank sends this message, also without tables, because it tells whether a rank failed.
fn reduce_tables(
    group: &mut dyn Group,
    leaves: usize,
    nodes: &[Vec<Range<usize>>],
    own: Result<Vec<Vec<Rows>>, String>,
    shape: &GradientShape,
) -> Result<Vec<Rows>, GroupError> {
    let mut bytes = vec![if own.is_ok() { ROWS } else { FAILURE }];
    match &own {
        Err(message) => bytes.extend_from_slice(message.as_bytes()),
        Ok(own) => {
            for rows in own.iter().flatten() {
                bytes.extend_from_slice(&(rows.numbers.len() as u64).to_le_bytes());
                bytes.extend_from_slice(bytemuck::cast_slice(&rows.numbers));
                bytes.extend_from_slice(bytemuck::cast_slice(&rows.values));
            }
        }
    }
    let all = group.all_gather(&bytes)?;
    let mut read = Vec::new();
    for (rank, (bytes, nodes)) in all.iter().zip(nodes).enumerate() {
        let mut bytes = match bytes.split_first() {
            Some((&ROWS, rows)) => rows,
            Some((&FAILURE, text)) => {
                let message = String::from_utf8_lossy(text).into_owned();
                return Err(GroupError::Failed { rank, message });
            }
            _ => return Err(GroupError::Malformed { rank }),
        };
        for node in nodes {
            let tables = shape.widths.iter().map(|&width| read_rows(&mut bytes, width));
            let tables = tables.collect::<Option<Vec<Rows>>>().ok_or(GroupError::Malformed { rank })?;
            read.push((node.clone(), Gradient { dense: Vec::new(), tables }));
        }
        if !bytes.is_empty() {
            return Err(GroupError::Malformed { rank });
        }
    }
    let mut left = read.into_iter().peekable();
    let mut given = |node: &Range<usize>| match left.next_if(|(next, _)| next == node) {
        Some((_, gradient)) => Ok(Given::Sum(gradient)),
        None if node.len() > 1 => Ok(Given::Children),
        None => Err(GroupError::Malformed { rank: 0 }),
    };
    let mut add = |left: &mut Gradient, right: Gradient| left.add_tables(&right.tables, shape);
    Ok(tree::sum(0..leaves, &mut given, &mut add)?.tables)
}

/// Takes the rows of one table from the front of a message.
fn read_rows(bytes: &mut &[u8], width: usize) -> Option<Rows> {
    let count = usize::try_from(u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?)).ok()?;
    let numbers = bytes.split_off(..count.checked_mul(4)?)?;
    let values = bytes.split_off(..count.checked_mul(width)?.checked_mul(4)?)?;
    Some(Rows {
        numbers: bytemuck::pod_collect_to_vec(numbers),
        values: bytemuck::pod_collect_to_vec(values),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Alone, Threads};
    use std::convert::Infallible;

    const SHAPE: usize = 2 * BUCKET + 77;

    /// The gradient of a leaf, whose sums round differently in every order.
    fn leaf(leaf: usize) -> Gradient {
        let dense = (0..SHAPE).map(|at| ((at * 7919 + leaf * 104_729) % 1000) as f32 * 1e-3 + 1e3).collect();
        let numbers: Vec<u32> = (0_u32..9).filter(|row| !(row + leaf as u32).is_multiple_of(3)).collect();
        let values = numbers.iter().flat_map(|&row| [row as f32 * 0.1 + leaf as f32, 0.3]).collect();
        Gradient { dense, tables: vec![Rows { numbers, values }] }
    }

    /// The nodes of one rank.
    fn nodes(rank: usize, ranks: usize, leaves: usize, shape: &GradientShape) -> Vec<Gradient> {
        let own = tree::cover(leaves, tree::leaves_of(rank, ranks, leaves));
        let mut given = |node: &Range<usize>| {
            Ok::<_, Infallible>(match node.len() {
                1 => Given::Sum(leaf(node.start)),
                _ => Given::Children,
            })
        };
        let mut add = |left: &mut Gradient, right: Gradient| left.add(&right, shape);
        own.into_iter().map(|node| tree::sum(node, &mut given, &mut add).unwrap_or_default()).collect()
    }

    /// The sum that a rank gets.
    fn reduced(group: &mut dyn Group, leaves: usize, shape: &GradientShape) -> Result<Gradient, GroupError> {
        let mut own = nodes(group.rank(), group.size(), leaves, shape);
        let mut sum = Gradient { dense: vec![7.0; 3], tables: Vec::new() };
        reduce(group, leaves, &mut own, shape, &mut Buckets::default(), &mut sum).map(|()| sum)
    }

    /// The sums of all ranks of a group.
    fn sums(ranks: usize, leaves: usize, shape: &GradientShape) -> Vec<Gradient> {
        let sum = |mut rank: Threads| reduced(&mut rank, leaves, shape).expect("all ranks send their sums");
        std::thread::scope(|scope| {
            let ranks: Vec<_> =
                Threads::group(ranks).into_iter().map(|rank| scope.spawn(move || sum(rank))).collect();
            ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
        })
    }

    #[test]
    fn sums_have_equal_bits_on_every_number_of_ranks() {
        let shape = GradientShape { dense: SHAPE, widths: vec![2] };
        for leaves in [1, 2, 5, 8] {
            let alone = reduced(&mut Alone, leaves, &shape).expect("it is alone");
            for ranks in [2, 3, 4, 6] {
                let sums = sums(ranks, leaves, &shape);
                assert!(sums.iter().all(|sum| *sum == alone), "{leaves} leaves on {ranks} ranks");
            }
        }
    }

    /// Nodes that fail when they are computed.
    struct Failing(Vec<Gradient>);

    impl Nodes for Failing {
        fn count(&self) -> usize {
            self.0.len()
        }

        fn compute(&mut self, _: Range<usize>) {}

        fn append(&self, node: usize, elements: Range<usize>, to: &mut Vec<f32>) {
            self.0.append(node, elements, to);
        }

        fn tables(&mut self) -> Result<Vec<Vec<Rows>>, String> {
            Err("out of memory".to_owned())
        }
    }

    #[test]
    fn all_ranks_get_the_failure_of_one() {
        let shape = GradientShape { dense: SHAPE, widths: vec![2] };
        let shape = &shape;
        let work = |mut rank: Threads| {
            let own = nodes(rank.rank(), 3, 5, shape);
            let (mut whole, mut failing) = (own.clone(), Failing(own));
            let own: &mut dyn Nodes = if rank.rank() == 1 { &mut failing } else { &mut whole };
            reduce(&mut rank, 5, own, shape, &mut Buckets::default(), &mut Gradient::default())
        };
        std::thread::scope(|scope| {
            let ranks: Vec<_> =
                Threads::group(3).into_iter().map(|rank| scope.spawn(move || work(rank))).collect();
            for rank in ranks {
                let error = rank.join().expect("no rank panics").expect_err("rank 1 fails");
                assert_eq!(error.to_string(), "rank 1: out of memory");
            }
        });
    }

    #[test]
    fn cut_messages_are_refused() {
        let rows = Rows { numbers: vec![1, 5], values: vec![1.0, 2.0] };
        let mut bytes = 2u64.to_le_bytes().to_vec();
        bytes.extend_from_slice(bytemuck::cast_slice(&rows.numbers));
        bytes.extend_from_slice(bytemuck::cast_slice(&rows.values));
        assert_eq!(read_rows(&mut &bytes[..], 1), Some(rows));
        assert!((0..bytes.len()).all(|end| read_rows(&mut &bytes[..end], 1).is_none()));
        assert_eq!(read_rows(&mut &[0xff; 64][..], 1), None);
    }
}
