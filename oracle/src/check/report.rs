//! Disagreements of a plan with its graph, and the summary of a proof.

use super::reverse::PROBES;
use autobatch_ir::id::{NodeId, ParamId, SigId, ValueId};
use autobatch_ir::plan::{KernelId, PortRole, StepId, StoreId};
use std::fmt;

/// The most disagreements that a report holds.
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

/// One disagreement of a plan with its graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// The plan was made for another structure, or binds other numbers.
    Structure {
        /// The difference.
        what: &'static str,
        /// The graph's.
        expected: u128,
        /// The plan's.
        found: u128,
    },
    /// A store is not the parameter of the module at the same place.
    Parameter {
        /// The store.
        store: StoreId,
        /// The module's declaration.
        expected: String,
        /// The plan's.
        found: String,
    },
    /// A lane names a node that the graph does not have.
    Node {
        /// The step.
        step: StepId,
        /// The value that the lane names.
        node: NodeId,
    },
    /// The lanes of a step have different signatures.
    Signature {
        /// The step.
        step: StepId,
        /// The node whose signature is not that of lane 0.
        node: NodeId,
    },
    /// A node is executed more than once.
    Twice {
        /// The step that executes it again.
        step: StepId,
        /// The node.
        node: NodeId,
    },
    /// The ports, parameters or results of a kernel do not fit the signature that it executes.
    Interface {
        /// The kernel.
        kernel: KernelId,
        /// A step that executes it.
        step: StepId,
        /// The difference.
        what: &'static str,
    },
    /// A result of a kernel differs from the signature that it executes.
    Kernel {
        /// The kernel.
        kernel: KernelId,
        /// A step that executes it.
        step: StepId,
        /// The number of the result.
        result: usize,
    },
    /// A kernel or cell is too large to compare.
    TooLarge {
        /// The kernel.
        kernel: KernelId,
    },
    /// A kernel has larger registers, or more work, than the values of a node that it is executed for justify.
    Registers {
        /// The kernel.
        kernel: KernelId,
        /// The node.
        node: NodeId,
    },
    /// A step takes another store than the signature says.
    Store {
        /// The step.
        step: StepId,
        /// The parameter port.
        port: usize,
        /// The store of the graph's parameter.
        expected: Option<StoreId>,
        /// The store that the step takes.
        found: StoreId,
    },
    /// A lane does not read the operand that the graph names.
    Operand {
        /// The step.
        step: StepId,
        /// The lane.
        lane: usize,
        /// The node behind it.
        node: NodeId,
        /// The number of the operand.
        operand: usize,
        /// The value in the graph.
        expected: Held,
        /// The value that the lane reads.
        found: Held,
    },
    /// An output row does not hold the requested value at the end.
    Output {
        /// The number of the output.
        output: usize,
        /// The requested value.
        expected: Held,
        /// The content of the row.
        found: Held,
    },
    /// The plan has other outputs than those requested.
    Outputs {
        /// The requested outputs, in order.
        expected: Vec<String>,
        /// The value that the plan names.
        found: Vec<String>,
    },
    /// A node that must be a batch of its own shares a batch.
    Alone {
        /// The step.
        step: StepId,
        /// The node.
        node: NodeId,
    },
    /// Some lane of a step does not read the value that all lanes promised to share.
    Shared {
        /// The step.
        step: StepId,
        /// The number of the operand.
        operand: usize,
        /// The value that was promised.
        value: ValueId,
        /// The value that another lane reads.
        found: Held,
    },
    /// A signature with a gradient is too large for the reference, or has no derivative.
    Unknown {
        /// The signature.
        sig: SigId,
        /// A node of it.
        node: NodeId,
    },
    /// A port of a step of the reverse reads other rows than its role names.
    Port {
        /// The step.
        step: StepId,
        /// The port.
        port: usize,
        /// The role that its kernel declares.
        role: PortRole,
        /// The first lane that is wrong.
        lane: usize,
        /// The node behind it.
        node: NodeId,
    },
    /// A result of a kernel of the reverse is not what its role says.
    Derivative {
        /// The kernel.
        kernel: KernelId,
        /// A step that executes it.
        step: StepId,
        /// The number of the result.
        result: usize,
    },
    /// A contribution of a signature is finite on no probe, so the proof cannot compare it.
    NotFinite {
        /// A step of the reverse.
        step: StepId,
        /// The signature.
        sig: SigId,
        /// A node of it.
        node: NodeId,
        /// The operand, or the parameter, to whose gradient it contributes.
        to: String,
    },
    /// A reduction takes rows that are no contribution to its parameter.
    Reduction {
        /// The reduction.
        number: usize,
        /// Its part.
        part: usize,
        /// The lane of the part.
        lane: u32,
        /// The node that the rows belong to, if they belong to one.
        node: Option<NodeId>,
    },
    /// Reductions do not take a contribution of a node to a parameter exactly once.
    Parameters {
        /// The node.
        node: NodeId,
        /// The parameter.
        param: ParamId,
    },
    /// A gradient store belongs to no parameter, or to one that has another.
    Gradient {
        /// The store.
        store: StoreId,
        /// The value that it names.
        of: StoreId,
    },
    /// The output for a gradient does not hold it.
    GradientOutput {
        /// The number of the output.
        output: usize,
        /// The value whose gradient was requested.
        value: ValueId,
    },
    /// The certificate claims a bound that does not hold.
    Bound {
        /// The largest that is proved.
        proved: u64,
        /// The claim of the plan.
        claimed: u32,
    },
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The structure is a hash; the others are counts.
            Self::Structure { what: what @ "structure", expected, found } => {
                write!(f, "{what}: the graph has {expected:x}, the plan was made for {found:x}")
            }
            Self::Structure { what, expected, found } => {
                write!(f, "{what}: the graph has {expected}, the plan was made for {found}")
            }
            Self::Parameter { store, expected, found } => {
                write!(f, "{store}: the module declares {expected}, the plan has {found}")
            }
            Self::Node { step, node } => write!(f, "step {step}: the graph has no node {node}"),
            Self::Signature { step, node } => {
                write!(f, "step {step}: {node} has another signature than the first lane")
            }
            Self::Twice { step, node } => write!(f, "step {step}: {node} was executed before"),
            Self::Interface { kernel, step, what } => {
                write!(
                    f,
                    "kernel {kernel}: its {what} are not those of the signature that step {step} executes"
                )
            }
            Self::Kernel { kernel, step, result } => write!(
                f,
                "kernel {kernel}: result {result} is not what the signature that step {step} executes computes"
            ),
            Self::TooLarge { kernel } => {
                write!(f, "kernel {kernel}: it is too large to be compared with its cell")
            }
            Self::Registers { kernel, node } => {
                write!(f, "kernel {kernel}: its registers or work exceed what the values of {node} justify")
            }
            Self::Store { step, port, expected, found } => {
                write!(f, "step {step}: parameter port {port} is {found}, ")?;
                match expected {
                    Some(store) => write!(f, "the graph says {store}"),
                    None => f.write_str("the graph has no parameter there"),
                }
            }
            Self::Operand { step, lane, node, operand, expected, found } => write!(
                f,
                "step {step}: lane {lane} ({node}) reads {found} as operand {operand}, the graph says {expected}"
            ),
            Self::Output { output, expected, found } => {
                write!(f, "output {output}: expected {expected}, found {found}")
            }
            Self::Outputs { expected, found } => {
                write!(f, "expected the outputs {expected:?}, found {found:?}")
            }
            Self::Alone { step, node } => write!(f, "step {step}: {node} must be a batch of its own"),
            Self::Shared { step, operand, value, found } => write!(
                f,
                "step {step}: operand {operand} must be {value} in every lane, because it was promised to be shared; another lane takes {found}"
            ),
            Self::Unknown { sig, node } => write!(
                f,
                "{node}: its signature {sig} is too large to be executed beside the reference, or has no derivative"
            ),
            Self::Port { step, port, role, lane, node } => write!(
                f,
                "step {step}: the kernel declares port {port} as {role}, but lane {lane} ({node}) reads other rows there"
            ),
            Self::Derivative { kernel, step, result } => write!(
                f,
                "kernel {kernel}: result {result} is not what its role says of the signature whose reverse step {step} executes"
            ),
            Self::NotFinite { step, sig, node, to } => write!(
                f,
                "step {step}: what {sig} ({node}) contributes to the gradient of {to} is infinite or no number on every lane of \
                 random numbers, in the reference too, so its reverse cannot be proven; do not differentiate \
                 divisions by 0 or overflows"
            ),
            Self::Reduction { number, part, lane, node } => {
                write!(f, "reduction {number}: lane {lane} of part {part} ")?;
                match node {
                    Some(node) => write!(f, "takes rows of {node} that are no contribution to its parameter"),
                    None => f.write_str("takes no row that a step of the reverse made"),
                }
            }
            Self::Parameters { node, param } => write!(
                f,
                "{node}: reductions must take its contribution to the gradient of {param} exactly once"
            ),
            Self::Gradient { store, of } => {
                write!(
                    f,
                    "{store}: it is the gradient of {of}, which is no parameter or has another gradient"
                )
            }
            Self::GradientOutput { output, value } => {
                write!(f, "output {output}: it does not hold the gradient of {value}")
            }
            Self::Bound { proved, claimed } => {
                write!(f, "the certificate claims a bound of {claimed} batches, {proved} are proved")
            }
        }
    }
}

/// The objects that a proof examined.
///
/// The forward part is proved for all numbers, and so is the structure of the reverse. The proof compares what a derivative
/// kernel computes with the reference's reverse mode of the one node, in `f32` and without tolerance, on [`PROBES`] lanes of
/// random numbers.
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
    /// The parameters whose gradients the plan makes.
    pub params: Vec<ParamId>,
    /// The values whose gradients are outputs.
    pub values: Vec<ValueId>,
}

impl Proof {
    /// Whether the plan makes gradients.
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
