//! What a plan and its graph disagree about.

use super::reverse::PROBES;
use autobatch_ir::id::{NodeId, ParamId, SigId, ValueId};
use autobatch_ir::plan::{KernelId, StepId, StoreId};
use std::fmt;

/// How many disagreements are kept.
pub const MAX_DISAGREEMENTS: usize = 100;

/// What an operand place holds, or should.
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
    /// Nothing that the graph knows.
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

/// One thing that a plan and its graph disagree about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// The plan was made for a graph of another structure, or binds other numbers.
    Structure {
        /// What differs.
        what: &'static str,
        /// The graph's.
        expected: u128,
        /// The plan's.
        found: u128,
    },
    /// A store is not the parameter of the module that stands at its place.
    Parameter {
        /// The store.
        store: StoreId,
        /// The module's declaration.
        expected: String,
        /// The plan's.
        found: String,
    },
    /// A lane names a node that the graph has not.
    Node {
        /// The step.
        step: StepId,
        /// What the lane names.
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
    /// A kernel has other ports, parameters or results than the signature that it executes.
    Interface {
        /// The kernel.
        kernel: KernelId,
        /// A step that executes it.
        step: StepId,
        /// What differs.
        what: &'static str,
    },
    /// A kernel computes another result than the signature that it executes.
    Kernel {
        /// The kernel.
        kernel: KernelId,
        /// A step that executes it.
        step: StepId,
        /// The number of the result.
        result: usize,
    },
    /// A kernel or cell is too large to be compared.
    TooLarge {
        /// The kernel.
        kernel: KernelId,
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
    /// A lane reads something else than the graph's operand.
    Operand {
        /// The step.
        step: StepId,
        /// The lane.
        lane: usize,
        /// The node behind it.
        node: NodeId,
        /// The number of the operand.
        operand: usize,
        /// What the graph says.
        expected: Held,
        /// What the lane reads.
        found: Held,
    },
    /// An output place does not hold what is wanted at the end.
    Output {
        /// The number of the output.
        output: usize,
        /// What is wanted.
        expected: Held,
        /// What is there.
        found: Held,
    },
    /// The plan's outputs are not those that are wanted.
    Outputs {
        /// What is wanted, in order.
        expected: Vec<String>,
        /// What the plan names.
        found: Vec<String>,
    },
    /// A node that must be a batch of its own has company.
    Alone {
        /// The step.
        step: StepId,
        /// The node.
        node: NodeId,
    },
    /// A value that its consumers promised to share is not taken by all lanes of a step.
    Shared {
        /// The step.
        step: StepId,
        /// The number of the operand.
        operand: usize,
        /// The value that was promised.
        value: ValueId,
        /// What another lane takes.
        found: Held,
    },
    /// A signature that a gradient reaches is too large to be executed beside the reference, or has no
    /// derivative.
    Unknown {
        /// The signature.
        sig: SigId,
        /// A node of it.
        node: NodeId,
    },
    /// A port of a step in reverse takes nothing that the reverse of its lanes is made of.
    Port {
        /// The step.
        step: StepId,
        /// The port.
        port: usize,
        /// The first lane that is wrong.
        lane: usize,
        /// The node behind it.
        node: NodeId,
    },
    /// A kernel in reverse makes something that is no gradient.
    Derivative {
        /// The kernel.
        kernel: KernelId,
        /// A step that executes it.
        step: StepId,
        /// The number of the result.
        result: usize,
    },
    /// What a signature contributes to a gradient is finite on none of the lanes on which its derivative is executed, so nothing
    /// can be compared.
    NotFinite {
        /// A step in reverse.
        step: StepId,
        /// The signature.
        sig: SigId,
        /// A node of it.
        node: NodeId,
        /// The operand, or the parameter, to whose gradient it contributes.
        to: String,
    },
    /// A final takes rows that are no contribution to its parameter.
    Reduction {
        /// The final.
        number: usize,
        /// Its part.
        part: usize,
        /// The lane of the part.
        lane: u32,
        /// The node whose rows it takes, if they are of one.
        node: Option<NodeId>,
    },
    /// What a node contributes to the gradient of a parameter is not taken exactly once.
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
        /// What it names.
        of: StoreId,
    },
    /// An output that is named after a gradient does not hold it.
    GradientOutput {
        /// The number of the output.
        output: usize,
        /// The value whose gradient is wanted.
        value: ValueId,
    },
    /// The certificate claims a bound that does not hold.
    Bound {
        /// The largest that is proved.
        proved: u64,
        /// What the plan claims.
        claimed: u32,
    },
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The structure is a hash; all else is counted.
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
                write!(f, "output {output}: it holds {found}, wanted is {expected}")
            }
            Self::Outputs { expected, found } => {
                write!(f, "the outputs are {found:?}, wanted are {expected:?}")
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
            Self::Port { step, port, lane, node } => write!(
                f,
                "step {step}: port {port} of lane {lane} ({node}) takes no operand, result or saved register of it, nor all contributions to the gradient of a result in graph order"
            ),
            Self::Derivative { kernel, step, result } => write!(
                f,
                "kernel {kernel}: result {result} is no gradient of the signature whose reverse step {step} executes"
            ),
            Self::NotFinite { step, sig, node, to } => write!(
                f,
                "step {step}: what {sig} ({node}) contributes to the gradient of {to} is infinite or no number on every lane of \
                 random numbers, by the reference too, so its reverse cannot be proven; keep what divides by 0 or overflows \
                 out of what is differentiated"
            ),
            Self::Reduction { number, part, lane, node } => {
                write!(f, "final {number}: lane {lane} of part {part} ")?;
                match node {
                    Some(node) => write!(f, "takes rows of {node} that are no contribution to its parameter"),
                    None => f.write_str("takes no row that a step in reverse made"),
                }
            }
            Self::Parameters { node, param } => write!(
                f,
                "{node}: what it contributes to the gradient of {param} must be taken by reductions exactly once"
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

/// What was proved of a plan, and how.
///
/// Forward, everything is proved for all numbers. In reverse, the structure is; what a derivative
/// kernel computes was compared with the reference's reverse mode of the one node, in `f32`
/// and without tolerance, on [`PROBES`] lanes of random numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    /// Kernels whose terms equal those of a signature.
    pub kernels: usize,
    /// Signatures whose reverse was asked of the reference.
    pub signatures: usize,
    /// Derivative kernels that were executed beside the reference.
    pub derivatives: usize,
    /// Operand rows of steps in reverse that were followed.
    pub reverse_rows: u64,
    /// The losses that the plan begins its reverse with, and their factors.
    pub losses: Vec<(ValueId, f32)>,
    /// The parameters whose gradients it makes.
    pub params: Vec<ParamId>,
    /// The values whose gradients it gives.
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

/// Everything that a plan and its graph disagree about, at most [`MAX_DISAGREEMENTS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disagreements {
    found: Vec<Disagreement>,
}

impl Disagreements {
    /// The disagreements in the order they were met.
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
