//! Roles: what the ports and results of a kernel in reverse are.
//!
//! A kernel in reverse computes the derivative of one node from rows that belong to this node. The planner knows which row
//! each port reads and which gradient each result contributes to. It declares both once per kernel. A proof verifies the
//! declaration; executors ignore it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The roles of all ports and results of a kernel in reverse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Roles {
    /// One role per port.
    pub ports: Vec<PortRole>,
    /// One role per result.
    pub results: Vec<ResultRole>,
}

/// The role of a port of a kernel in reverse, for the node of each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PortRole {
    /// An operand of the node.
    Operand(u32),
    /// A result of the node.
    Result(u32),
    /// A register that the forward step saves behind the results of the node.
    Saved(u32),
    /// All contributions to the gradient of a result, as a list or as their sum.
    Gradient(u32),
    /// The gradient of an output that arrives at the pause.
    Arriving,
    /// All contributions to the gradient of some result. Lanes of a step may name results with different numbers.
    Contributions,
    /// The item of a list operand to whose gradient the step contributes.
    Item(u32),
    /// This result of the step in reverse of every node that reads the items, in graph order.
    Readers(u32),
}

/// The role of a result of a kernel in reverse, for the node of each lane.
#[expect(missing_docs, reason = "the description of each variant names its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultRole {
    /// A contribution to the gradient of an operand. Of a list, one row is for all its values unless the result is edges.
    /// `number` says which use of the operand contributes. Only lists have more than one.
    Contribution { operand: u32, number: u32 },
    /// Rows that a sum over the minibatch takes for the gradient of a parameter, or that a step which pulls reads.
    Part,
    /// The sum of the contributions that the one port reads.
    Gradient,
    /// The factor of a loss, or a gradient that arrives at the pause.
    Seed,
}

impl fmt::Display for PortRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operand(number) => write!(f, "operand {number}"),
            Self::Result(number) => write!(f, "result {number}"),
            Self::Saved(number) => write!(f, "saved {number}"),
            Self::Gradient(number) => write!(f, "gradient {number}"),
            Self::Arriving => f.write_str("arriving"),
            Self::Contributions => f.write_str("contributions"),
            Self::Item(number) => write!(f, "item {number}"),
            Self::Readers(number) => write!(f, "readers {number}"),
        }
    }
}

impl fmt::Display for ResultRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contribution { operand, number: 0 } => write!(f, "to {operand}"),
            Self::Contribution { operand, number } => write!(f, "to {operand} use {number}"),
            Self::Part => f.write_str("part"),
            Self::Gradient => f.write_str("gradient"),
            Self::Seed => f.write_str("seed"),
        }
    }
}
