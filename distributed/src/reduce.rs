//! The sum of the gradients of all ranks, in the order of the [tree].
//!
//! The dense part is cut into buckets, and each bucket into one slice per rank. A rank receives its slice of every node of
//! the tree from the other ranks, adds them, and sends the sum to all. Each rank therefore sends and receives as much as
//! with a ring, times the number of nodes per rank. Of tables, all ranks receive the rows of all nodes.

use crate::gradient::{Gradient, GradientShape, Rows, add_floats};
use crate::group::{Bucket, Group, GroupError};
use crate::tree::{self, Given};
use std::ops::Range;

/// The number of floats of a bucket: 1 MiB. A message of this size reaches nearly the full bandwidth of most networks.
const BUCKET: usize = 1 << 18;

/// The memory of the messages, which one sum after the other uses. Fresh memory costs the system about as much as moving it.
#[derive(Debug, Default)]
pub struct Buckets(Vec<Bucket>);

/// Adds the gradients of the nodes of all ranks. `own` holds those of this rank: the
/// [cover](tree::cover) of its [leaves](tree::leaves_of). All ranks receive the same sum.
///
/// # Errors
/// A rank ended or sent a malformed message.
pub fn reduce(
    group: &mut dyn Group,
    leaves: usize,
    mut own: Vec<Gradient>,
    shape: &GradientShape,
    buckets: &mut Buckets,
) -> Result<Gradient, GroupError> {
    let (rank, ranks) = (group.rank(), group.size());
    if ranks == 1 {
        // The cover of all leaves is the root.
        return Ok(own.pop().unwrap_or_default());
    }
    let nodes: Vec<Vec<Range<usize>>> =
        (0..ranks).map(|rank| tree::cover(leaves, tree::leaves_of(rank, ranks, leaves))).collect();
    let dense = reduce_dense(group, leaves, &nodes, &mut own, shape.dense, &mut buckets.0)?;
    let own: Vec<Vec<Rows>> = own.into_iter().map(|gradient| gradient.tables).collect();
    let tables = match shape.widths.is_empty() {
        true => Vec::new(),
        false => reduce_tables(group, leaves, &nodes, &own, shape)?,
    };
    debug_assert_eq!(nodes[rank].len(), own.len());
    Ok(Gradient { dense, tables })
}

/// Part `number` of `count` nearly equal parts of a range.
fn part(range: &Range<usize>, number: usize, count: usize) -> Range<usize> {
    let at = |number: usize| range.start + range.len() * number / count;
    at(number)..at(number + 1)
}

fn reduce_dense(
    group: &mut dyn Group,
    leaves: usize,
    nodes: &[Vec<Range<usize>>],
    own: &mut [Gradient],
    elements: usize,
    buckets: &mut Vec<Bucket>,
) -> Result<Vec<f32>, GroupError> {
    let (rank, ranks) = (group.rank(), group.size());
    let ranges: Vec<Range<usize>> =
        (0..elements).step_by(BUCKET).map(|start| start..elements.min(start + BUCKET)).collect();
    buckets.resize_with(ranges.len(), Bucket::default);
    for (bucket, range) in buckets.iter_mut().zip(&ranges) {
        let slices: Vec<Range<usize>> = (0..ranks).map(|rank| part(range, rank, ranks)).collect();
        let width = slices[rank].len();
        bucket.send.clear();
        for slice in &slices {
            own.iter().for_each(|node| bucket.send.extend_from_slice(&node.dense[slice.clone()]));
        }
        bucket.send_counts = slices.iter().map(|slice| own.len() * slice.len()).collect();
        bucket.receive_counts = nodes.iter().map(|nodes| nodes.len() * width).collect();
        bucket.receive.resize(bucket.receive_counts.iter().sum(), 0.0);
        bucket.own.clear();
        bucket.own.resize(width, 0.0);
        bucket.whole.resize(range.len(), 0.0);
        bucket.whole_counts = slices.iter().map(Range::len).collect();
    }
    let mut sum = |received: &[f32], sum: &mut [f32]| {
        if sum.is_empty() {
            return;
        }
        let mut left = nodes.iter().flatten().zip(received.chunks_exact(sum.len())).peekable();
        let mut given = |node: &Range<usize>| match left.next_if(|(next, _)| *next == node) {
            Some((_, slice)) => Ok(Given::Sum(slice.to_vec())),
            None if node.len() > 1 => Ok(Given::Children),
            None => Err(()),
        };
        let mut add = |left: &mut Vec<f32>, right: Vec<f32>| add_floats(left, &right);
        if let Ok(added) = tree::sum(0..leaves, &mut given, &mut add) {
            sum.copy_from_slice(&added);
        }
    };
    group.exchange(buckets, &mut sum)?;
    // The elements of this rank are in the messages, so their memory is free.
    let mut dense = own.first_mut().map(|node| std::mem::take(&mut node.dense)).unwrap_or_default();
    dense.clear();
    buckets.iter().for_each(|bucket| dense.extend_from_slice(&bucket.whole));
    Ok(dense)
}

fn reduce_tables(
    group: &mut dyn Group,
    leaves: usize,
    nodes: &[Vec<Range<usize>>],
    own: &[Vec<Rows>],
    shape: &GradientShape,
) -> Result<Vec<Rows>, GroupError> {
    let mut bytes = Vec::new();
    for rows in own.iter().flatten() {
        bytes.extend_from_slice(&(rows.numbers.len() as u64).to_le_bytes());
        bytes.extend_from_slice(bytemuck::cast_slice(&rows.numbers));
        bytes.extend_from_slice(bytemuck::cast_slice(&rows.values));
    }
    let all = group.all_gather(&bytes)?;
    let mut read = Vec::new();
    for (rank, (mut bytes, nodes)) in all.iter().map(Vec::as_slice).zip(nodes).enumerate() {
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

    /// The sums of all ranks of a group.
    fn sums(ranks: usize, leaves: usize, shape: &GradientShape) -> Vec<Gradient> {
        let sum = |mut rank: Threads| {
            let own = nodes(rank.rank(), ranks, leaves, shape);
            reduce(&mut rank, leaves, own, shape, &mut Buckets::default()).expect("all ranks send their sums")
        };
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
            let alone =
                reduce(&mut Alone, leaves, nodes(0, 1, leaves, &shape), &shape, &mut Buckets::default())
                    .expect("it is alone");
            for ranks in [2, 3, 4, 6] {
                let sums = sums(ranks, leaves, &shape);
                assert!(sums.iter().all(|sum| *sum == alone), "{leaves} leaves on {ranks} ranks");
            }
        }
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
