//! Disagreements of a plan with its graph, and the summary of a proof.

use super::reverse::PROBES;
use autobatch_ir::id::{NodeId, ParamId, SigId, ValueId};
use autobatch_ir::plan::{KernelId, PortRole, StepId, StoreId};
use std::fmt;

/// The maximum number of disagreements in a report.
pub const MAX_DISAGREEMENTS: usize = 100;

/// The content of an operand row, found or expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A value of the graph.
    Value(ValueId),
    /// The values of a list, in order.
    List(Vec<ValueId>),
    /// Bound words from this place on.
    Words(u32),
    /// Bound floats from this place on.
    Floats(u32),
    /// No value of the graph.
    Nothing,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "{value}"),
            Self::List(values) => {
                const SHOWN: usize = 8;
                f.write_str("the list [")?;
                for (place, value) in values.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{value}", if place == 0 { "" } else { " " })?;
                }
                f.write_str(if values.len() > SHOWN { " ..]" } else { "]" })
            }
            Self::Words(slot) => write!(f, "bound words from {slot}"),
            Self::Floats(slot) => write!(f, "bound floats from {slot}"),
            Self::Nothing => f.write_str("no value of the graph"),
        }
    }
}

/// One disagreement of a plan with its graph. `expected` is the graph's and `found` the plan's.
#[expect(missing_docs, reason = "the messages explain the fields")]
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// The plan was made for another graph structure, or binds other numbers.
    #[error("{what}: the graph has {}, the plan was made for {}", spell(what, *expected), spell(what, *found))]
    Structure { what: &'static str, expected: u128, found: u128 },
    /// A store is not the parameter of the module at the same place.
    #[error("{store}: the module declares {expected}, the plan has {found}")]
    Parameter { store: StoreId, expected: String, found: String },
    /// A lane names a node that the graph does not have.
    #[error("step {step}: the graph has no node {node}")]
    Node { step: StepId, node: NodeId },
    /// The lanes of a step have different signatures.
    #[error("step {step}: {node} has another signature than the first lane")]
    Signature { step: StepId, node: NodeId },
    /// A node is executed more than once.
    #[error("step {step}: {node} was executed before")]
    Twice { step: StepId, node: NodeId },
    /// The ports, parameters or results of a kernel do not fit the signature that it executes.
    #[error("kernel {kernel}: its {what} are not those of the signature that step {step} executes")]
    Interface { kernel: KernelId, step: StepId, what: &'static str },
    /// A result of a kernel differs from the signature that it executes.
    #[error("kernel {kernel}: result {result} is not what the signature that step {step} executes computes")]
    Kernel { kernel: KernelId, step: StepId, result: usize },
    /// A kernel or cell is too large to compare.
    #[error("kernel {kernel}: it is too large to be compared with its cell")]
    TooLarge { kernel: KernelId },
    /// A kernel has larger registers, or more work, than the values of its node justify.
    #[error("kernel {kernel}: its registers or its work are larger than the values of {node} justify")]
    Registers { kernel: KernelId, node: NodeId },
    /// A step takes another store than its signature.
    #[error(
        "step {step}: parameter port {port} is {found}, {}",
        expected.map_or_else(|| "the graph has no parameter there".to_owned(), |store| format!("the graph says {store}"))
    )]
    Store { step: StepId, port: usize, expected: Option<StoreId>, found: StoreId },
    /// A lane does not read the operand that the graph names.
    #[error(
        "step {step}: lane {lane} ({node}) reads {found} as operand {operand}, the graph says {expected}"
    )]
    Operand { step: StepId, lane: usize, node: NodeId, operand: usize, expected: Held, found: Held },
    /// An output row does not hold the requested value at the end.
    #[error("output {output}: expected {expected}, found {found}")]
    Output { output: usize, expected: Held, found: Held },
    /// The plan has other outputs than those requested.
    #[error("expected the outputs {expected:?}, found {found:?}")]
    Outputs { expected: Vec<String>, found: Vec<String> },
    /// A node that must be a batch of its own shares a batch.
    #[error("step {step}: {node} must be a batch of its own")]
    Alone { step: StepId, node: NodeId },
    /// Some lane of a step does not read the value that all lanes promised to share.
    #[error(
        "step {step}: operand {operand} must be {value} in every lane, because it was promised to be shared; another lane takes {found}"
    )]
    Shared { step: StepId, operand: usize, value: ValueId, found: Held },
    /// A signature that a gradient reaches is too large for the reference, or has no derivative.
    #[error(
        "{node}: its signature {sig} is too large to be executed beside the reference, or has no derivative"
    )]
    Unknown { sig: SigId, node: NodeId },
    /// A port of a step of the reverse reads other rows than its role names. `lane` is the first wrong lane.
    #[error(
        "step {step}: the kernel declares port {port} as {role}, but lane {lane} ({node}) reads other rows there"
    )]
    Port { step: StepId, port: usize, role: PortRole, lane: usize, node: NodeId },
    /// A result of a kernel of the reverse does not fit its role.
    #[error(
        "kernel {kernel}: result {result} is not what its role says of the signature whose reverse step {step} executes"
    )]
    Derivative { kernel: KernelId, step: StepId, result: usize },
    /// The contribution of a signature to the operand or parameter `to` is finite on no probe, so it cannot be
    /// compared.
    #[error(
        "step {step}: what {sig} ({node}) contributes to the gradient of {to} is infinite or no number on every lane of \
         random numbers, in the reference too, so its reverse cannot be proven; do not differentiate divisions by 0 or \
         overflows"
    )]
    NotFinite { step: StepId, sig: SigId, node: NodeId, to: String },
    /// A reduction takes rows that are no contribution to its parameter. They belong to `node`, if to any.
    #[error(
        "reduction {number}: lane {lane} of part {part} {}",
        node.map_or_else(
            || "takes no row that a step of the reverse made".to_owned(),
            |node| format!("takes rows of {node} that are no contribution to its parameter"),
        )
    )]
    Reduction { number: usize, part: usize, lane: u32, node: Option<NodeId> },
    /// A part of a reduction takes a row out of the order of the sum: ascending by signature, place in its body, and node.
    #[error("reduction {number}, part {part}, lane {lane}: the row of {node} belongs earlier in the sum")]
    Order { number: usize, part: usize, lane: u32, node: NodeId },
    /// A part of a reduction takes a row of a node in the sum of another shard.
    #[error("reduction {number}, part {part}, lane {lane}: {node} belongs to another shard")]
    Shard { number: usize, part: usize, lane: u32, node: NodeId },
    /// Reductions do not take a contribution of a node to a parameter exactly once.
    #[error("{node}: reductions must take its contribution to the gradient of {param} exactly once")]
    Parameters { node: NodeId, param: ParamId },
    /// A gradient store belongs to no parameter, or to one that has another.
    #[error("{store}: it is the gradient of {of}, which is no parameter or has another gradient")]
    Gradient { store: StoreId, of: StoreId },
    /// The output for a gradient does not hold it.
    #[error("output {output}: it does not hold the gradient of {value}")]
    GradientOutput { output: usize, value: ValueId },
    /// The certificate claims a larger bound than the largest that is proved.
    #[error("the certificate claims a bound of {claimed} batches, {proved} are proved")]
    Bound { proved: u64, claimed: u32 },
}

autobatch_ir::debug_as_display!(Disagreement);

/// The text of a number of [`Disagreement::Structure`]: the structure is a hash, the others are counts.
fn spell(what: &str, number: u128) -> String {
    if what == "structure" { format!("{number:x}") } else { number.to_string() }
}

/// The objects that a proof examined.
///
/// The forward part and the structure of the reverse are proved for all numbers. Derivative kernels equal the
/// reference's reverse mode of the one node in `f32`, without tolerance, on [`PROBES`] lanes of random numbers or more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    /// Kernels whose terms equal those of a signature.
    pub kernels: usize,
    /// Signatures whose derivative the reference computed.
    pub signatures: usize,
    /// Derivative kernels that were executed beside the reference.
    pub derivatives: usize,
    /// Operand rows of the reverse that were followed.
    pub reverse_rows: u64,
    /// The losses that the reverse begins with, and their factors.
    pub losses: Vec<(ValueId, f32)>,
    /// The values whose gradients arrive at the pause, in order.
    pub arriving: Vec<ValueId>,
    /// The parameters whose gradients the plan makes.
    pub params: Vec<ParamId>,
    /// The values whose gradients are outputs.
    pub values: Vec<ValueId>,
}

impl Proof {
    /// Returns whether the plan makes gradients.
    #[must_use]
    pub fn has_reverse(&self) -> bool {
        self.signatures + self.derivatives + self.params.len() + self.values.len() > 0
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "forward: {} kernels equal their signatures, term by term", self.kernels)?;
        if self.has_reverse() {
            write!(
                f,
                "\nreverse: {} losses, gradients of {} parameters and {} values; {} operand rows followed; {} derivative kernels equal the reference on {PROBES} random lanes or more each",
                self.losses.len(),
                self.params.len(),
                self.values.len(),
                self.reverse_rows,
                self.derivatives,
            )?;
        }
        Ok(())
    }
}

/// The disagreements of a plan with its graph, at most [`MAX_DISAGREEMENTS`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Disagreements {
    found: Vec<Disagreement>,
}

impl Disagreements {
    /// The disagreements in the order in which the proof found them.
    #[must_use]
    pub fn found(&self) -> &[Disagreement] {
        &self.found
    }

    #[cold]
    pub(super) fn push(&mut self, disagreement: Disagreement) {
        if !self.is_full() {
            self.found.push(disagreement);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MAX_DISAGREEMENTS
    }
}

impl fmt::Display for Disagreements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.found.len();
        let more = if count < MAX_DISAGREEMENTS { "" } else { " or more" };
        let s = if count == 1 { "" } else { "s" };
        write!(f, "the plan disagrees with its graph in {count}{more} place{s}")?;
        for (number, disagreement) in self.found.iter().enumerate() {
            write!(f, "\n{:>4}. {disagreement}", number + 1)?;
        }
        Ok(())
    }
}

impl std::error::Error for Disagreements {}

autobatch_ir::debug_as_display!(Disagreements);
