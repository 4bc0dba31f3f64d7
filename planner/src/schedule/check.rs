//! The independent check of an order: reads only the problem and the batches, shares no code with any policy.
//!
//! An order is valid iff
//! 1. its offsets start at 0, rise strictly (no empty batch) and end at the number of items;
//! 2. every node occurs exactly once;
//! 3. items are ascending inside a batch;
//! 4. the nodes of a batch have one type, and an alone node is a batch of its own;
//! 5. every operand of a node stands in an earlier batch (so there is no dependence inside a batch either).
//!
//! Cost: O(nodes + operands), one allocation. Cheap enough for every debug build and for release where an order comes from
//! outside.

use super::{Batches, Problem};
use std::fmt;

/// Proves that `batches` is a valid order of `problem`, or names the first rule it breaks.
pub fn check(problem: &Problem<'_>, batches: &Batches) -> Result<(), ScheduleError> {
    let items = &batches.items;
    let offsets_ok = match (batches.start.first(), batches.start.last()) {
        (Some(0), Some(&last)) => {
            last as usize == items.len() && batches.start.windows(2).all(|pair| pair[0] < pair[1])
        }
        _ => false,
    };
    if !offsets_ok {
        return Err(ScheduleError::Offsets { items: items.len() });
    }
    let batch_of = place(problem, batches)?;
    for (batch, nodes) in batches.iter().enumerate() {
        if let Some(pair) = nodes.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(ScheduleError::NotAscending { batch, node: pair[1] });
        }
        let first = nodes[0];
        let mixed = |&&node: &&u32| problem.ty()[node as usize] != problem.ty()[first as usize];
        if let Some(&node) = nodes.iter().find(mixed) {
            return Err(ScheduleError::MixedTypes { batch, first, node });
        }
    }
    for &node in problem.alone() {
        let batch = batch_of[node as usize] as usize;
        if batches.get(batch).len() != 1 {
            return Err(ScheduleError::NotAlone { batch, node });
        }
    }
    for node in 0..problem.len() {
        for &operand in problem.operands(node) {
            if batch_of[operand as usize] >= batch_of[node] {
                return Err(ScheduleError::OperandTooLate {
                    node: node as u32,
                    operand,
                    batch: batch_of[node] as usize,
                });
            }
        }
    }
    Ok(())
}

/// Rule 2; gives the batch of every node.
fn place(problem: &Problem<'_>, batches: &Batches) -> Result<Vec<u32>, ScheduleError> {
    const NOWHERE: u32 = u32::MAX;
    let mut batch_of = vec![NOWHERE; problem.len()];
    for (batch, nodes) in batches.iter().enumerate() {
        for &node in nodes {
            match batch_of.get_mut(node as usize) {
                None => return Err(ScheduleError::NoSuchNode { batch, node }),
                Some(place) if *place != NOWHERE => return Err(ScheduleError::Twice { batch, node }),
                Some(place) => *place = batch as u32,
            }
        }
    }
    match batch_of.iter().position(|&batch| batch == NOWHERE) {
        Some(node) => Err(ScheduleError::Missing { node: node as u32 }),
        None => Ok(batch_of),
    }
}

/// The first rule that an order breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// Rule 1.
    Offsets {
        /// How many items the offsets must span.
        items: usize,
    },
    /// Rule 2: an item is not a node.
    NoSuchNode {
        /// The batch.
        batch: usize,
        /// The item.
        node: u32,
    },
    /// Rule 2: a node occurs again.
    Twice {
        /// The batch of the second occurrence.
        batch: usize,
        /// The node.
        node: u32,
    },
    /// Rule 2: a node is in no batch.
    Missing {
        /// The node.
        node: u32,
    },
    /// Rule 3.
    NotAscending {
        /// The batch.
        batch: usize,
        /// The node that stands after a larger one.
        node: u32,
    },
    /// Rule 4: two types in one batch.
    MixedTypes {
        /// The batch.
        batch: usize,
        /// Its first node.
        first: u32,
        /// A node of another type.
        node: u32,
    },
    /// Rule 4: an alone node has company.
    NotAlone {
        /// The batch.
        batch: usize,
        /// The alone node.
        node: u32,
    },
    /// Rule 5.
    OperandTooLate {
        /// The node.
        node: u32,
        /// The operand that is not earlier.
        operand: u32,
        /// The node's batch.
        batch: usize,
    },
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offsets { items } => {
                write!(f, "rule 1: batch offsets must rise strictly from 0 to {items}")
            }
            Self::NoSuchNode { batch, node } => {
                write!(f, "rule 2: batch {batch} holds {node}, which is not a node")
            }
            Self::Twice { batch, node } => {
                write!(f, "rule 2: batch {batch} holds node {node}, which is already placed")
            }
            Self::Missing { node } => write!(f, "rule 2: node {node} is in no batch"),
            Self::NotAscending { batch, node } => {
                write!(f, "rule 3: batch {batch} is not ascending at node {node}")
            }
            Self::MixedTypes { batch, first, node } => {
                write!(f, "rule 4: batch {batch} holds nodes {first} and {node} of different types")
            }
            Self::NotAlone { batch, node } => {
                write!(f, "rule 4: batch {batch} gives company to the alone node {node}")
            }
            Self::OperandTooLate { node, operand, batch } => {
                write!(f, "rule 5: operand {operand} of node {node} is not in a batch before {batch}")
            }
        }
    }
}

impl std::error::Error for ScheduleError {}
