//! Recipes: random graphs as plain data that a test can shrink.
//!
//! A recipe is a list of decisions, and *any* list of decisions is a legal recipe. A step chooses its operands
//! among the values that fit by rendezvous hashing: the candidate whose name hashes lowest with the step's pick
//! wins. If no value fits, the step emits one. So removing a step changes only the steps that read its results,
//! and shrinking finds small graphs.

use super::act::{Act, CellName};
use super::rng::Rng;

/// The kind of graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// At most 14 nodes: small enough for exhaustive search.
    Small,
    /// 20 to 200 nodes of every kind.
    Medium,
    /// Binary trees whose leaves are table lookups.
    Trees,
    /// Recurrent chains of different lengths.
    Chains,
    /// Lists of recent values, with folds and attention.
    Lattices,
    /// Values of every rank and element type, with moves along every axis.
    Blocks,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 6] =
        [Self::Small, Self::Medium, Self::Trees, Self::Chains, Self::Lattices, Self::Blocks];

    /// The number of nodes of a graph of this profile, including lists and bindings.
    #[must_use]
    pub const fn nodes(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Self::Small => 1..=14,
            Self::Medium => 20..=200,
            Self::Trees | Self::Chains | Self::Lattices | Self::Blocks => 10..=400,
        }
    }
}

/// The limits of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The kind of graph.
    pub profile: Profile,
    /// Whether every instance has a loss.
    pub losses: bool,
    /// Whether losses depend smoothly on parameters.
    pub smooth: bool,
    /// Whether the graph omits losses, noise and all other ops for training only.
    pub infer_only: bool,
    /// Whether numbers have any size, including infinities and NaN, and functions leave their domain.
    pub wild: bool,
}

impl Options {
    /// All actions of the profile, with numbers in a moderate range.
    #[must_use]
    pub const fn new(profile: Profile) -> Self {
        Self { profile, losses: false, smooth: false, infer_only: false, wild: false }
    }

    /// Adds a loss of any ops to each instance.
    #[must_use]
    pub const fn with_losses(self) -> Self {
        Self { losses: true, ..self }
    }

    /// Adds losses that depend smoothly on parameters.
    #[must_use]
    pub const fn differentiable(self) -> Self {
        Self { losses: true, smooth: true, ..self }
    }

    /// Omits ops for training only.
    #[must_use]
    pub const fn infer_only(self) -> Self {
        Self { infer_only: true, ..self }
    }

    /// Allows numbers of any size.
    #[must_use]
    pub const fn wild(self) -> Self {
        Self { wild: true, ..self }
    }

    fn allows(self, act: Act) -> bool {
        (!self.smooth || act.is_smooth()) && (!self.infer_only || !act.is_for_training())
    }
}

/// The values among which a step looks for operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All values.
    Any,
    /// The newest value that fits.
    Latest,
    /// The oldest value without a reader.
    Unused,
    /// One of the six newest values.
    Near,
}

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The name of the step in the recipe. The recipe never reuses it.
    pub name: u32,
    /// The action.
    pub act: Act,
    /// The values among which the step looks for operands.
    pub reach: Reach,
    /// Whether one value serves as every operand that it fits.
    pub twin: bool,
    /// Chooses operands.
    pub pick: u32,
    /// Chooses lengths, indices and forms.
    pub size: u32,
    /// Whether the node must be a batch of one.
    pub alone: bool,
}

impl Step {
    /// Returns a decision that is not a step of a recipe: another choice among the available values.
    #[must_use]
    pub const fn choice(pick: u32, size: u32) -> Self {
        Self { name: 0, act: Act::Fill, reach: Reach::Any, twin: false, pick, size, alone: false }
    }
}

/// One of the recipe's own cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// One number per port, which chooses its type.
    pub ports: Vec<u32>,
    /// The steps of the body.
    pub steps: Vec<Step>,
    /// One number per result, which chooses the value. A cell has one result even if this list is empty.
    pub results: Vec<u32>,
}

/// One instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The key of the instance's noise.
    pub key: u64,
    /// The steps of the instance.
    pub steps: Vec<Step>,
    /// One number per output, which chooses the value.
    pub outputs: Vec<u32>,
    /// The form of the loss.
    pub loss: Option<u32>,
}

/// A random graph with its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The options.
    pub options: Options,
    /// The width of most vectors.
    pub width: u32,
    /// The bodies of the recipe's own cells.
    pub cells: Vec<Body>,
    /// The steps common to all instances.
    pub prefix: Vec<Step>,
    /// The instances.
    pub instances: Vec<Instance>,
    /// Whether common nodes at the end read all losses.
    pub total: bool,
}

impl Recipe {
    /// Returns the recipe of a seed.
    #[must_use]
    pub fn new(seed: u64, options: Options) -> Self {
        Self::drawn(Rng::new(seed), options)
    }

    /// Returns the recipe whose decisions a stream makes.
    #[must_use]
    pub fn drawn(rng: Rng, options: Options) -> Self {
        let mut author = Author { rng, deck: deck(options), names: 0, options };
        let mut recipe = author.recipe();
        recipe.fit(&mut author);
        recipe
    }

    /// Counts the decisions. Shrinking lowers this number.
    #[must_use]
    pub fn len(&self) -> usize {
        let of_cell = |cell: &Body| 1 + cell.ports.len() + cell.steps.len() + cell.results.len();
        self.cells.iter().map(of_cell).sum::<usize>()
            + self.prefix.len()
            + self.instances.iter().map(|i| 1 + i.steps.len() + i.outputs.len()).sum::<usize>()
    }

    /// Returns whether the recipe contains no decision.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every step of the recipe.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        let instances = self.instances.iter().flat_map(|instance| &instance.steps);
        self.cells.iter().flat_map(|cell| &cell.steps).chain(&self.prefix).chain(instances)
    }

    /// Adds and drops steps until the number of nodes fits the profile.
    fn fit(&mut self, author: &mut Author) {
        let wanted = self.options.profile.nodes();
        for _ in 0..500 {
            let nodes = self.graph().arena.len();
            if nodes > *wanted.end() {
                self.drop_one();
            } else if nodes < *wanted.start() {
                let step = author.step();
                match self.instances.last_mut() {
                    Some(instance) => instance.steps.push(step),
                    None => self.prefix.push(step),
                }
            } else {
                return;
            }
        }
        unreachable!("steps can be dropped and added until the size fits");
    }

    fn drop_one(&mut self) {
        let longest = self.instances.iter_mut().max_by_key(|instance| instance.steps.len());
        let dropped = longest.and_then(|instance| instance.steps.pop()).or_else(|| self.prefix.pop());
        if dropped.is_none() {
            self.instances.pop();
            self.total = false;
        }
    }
}

/// Returns the actions of a profile. Frequent actions occur several times.
fn deck(options: Options) -> Vec<Act> {
    let mut deck = Act::all();
    deck.extend(CellName::ALL.map(Act::Call));
    deck.extend([Act::Affine, Act::AffineBias, Act::AffineParts, Act::AffineRows, Act::Look]);
    if options.profile == Profile::Blocks {
        deck = Act::on_blocks();
    }
    deck.retain(|&act| options.allows(act));
    deck
}

struct Author {
    rng: Rng,
    deck: Vec<Act>,
    names: u32,
    options: Options,
}

impl Author {
    fn recipe(&mut self) -> Recipe {
        let options = self.options;
        let small = options.profile == Profile::Small;
        let cells = if small { self.rng.below(2) } else { self.rng.below(4) };
        let width = match small {
            true => 1 + self.rng.below(3),
            // Some widths exceed the width of a vector instruction.
            false if self.rng.chance(6) => self.rng.pick(&[16, 17, 33]),
            false => 1 + self.rng.below(6),
        };
        let cells = (0..cells).map(|_| self.body()).collect();
        let prefix = if self.rng.chance(50) { self.steps(1, 3) } else { Vec::new() };
        let instances = match options.profile {
            Profile::Small => self.rng.between(1, 4),
            _ => self.rng.between(2, 8),
        };
        let instances = self.instances(instances);
        let total = options.losses && self.rng.chance(50);
        Recipe { options, width, cells, prefix, instances, total }
    }

    /// Draws instances. Some repeat the previous one with other operands and numbers, so their nodes share batches.
    fn instances(&mut self, count: u32) -> Vec<Instance> {
        let mut instances: Vec<Instance> = Vec::new();
        for number in 0..count {
            let mut instance = self.instance(u64::from(number));
            if let (true, Some(before)) = (self.rng.chance(35), instances.last()) {
                instance.steps = before.steps.iter().map(|step| self.resume_instance(step)).collect();
            }
            instances.push(instance);
        }
        instances
    }

    fn resume_instance(&mut self, step: &Step) -> Step {
        let other = self.act(step.act, step.reach);
        Step { name: other.name, pick: other.pick, ..*step }
    }

    fn body(&mut self) -> Body {
        let mut numbers = |low, high| -> Vec<u32> {
            (0..self.rng.between(low, high)).map(|_| self.rng.word() as u32).collect()
        };
        let (ports, results) = (numbers(0, 4), numbers(1, 3));
        Body { ports, steps: self.steps(1, 5), results }
    }

    fn instance(&mut self, number: u64) -> Instance {
        let steps = match self.options.profile {
            _ if self.rng.chance(15) => self.steps(0, 1),
            Profile::Small => self.steps(1, 4),
            Profile::Medium | Profile::Blocks => self.steps(1, 12),
            Profile::Trees => self.tree(),
            Profile::Chains => self.chain(),
            Profile::Lattices => self.lattice(),
        };
        let outputs = (0..self.rng.below(3)).map(|_| self.rng.word() as u32).collect();
        let wants_loss = self.options.losses || self.rng.chance(40);
        let loss = (wants_loss && !self.options.infer_only).then(|| self.rng.word() as u32);
        Instance { key: number + 100 * u64::from(self.rng.below(10)), steps, outputs, loss }
    }

    fn steps(&mut self, low: u32, high: u32) -> Vec<Step> {
        (0..self.rng.between(low, high)).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> Step {
        let act = self.rng.pick(&self.deck);
        let reach = self.rng.pick(&[Reach::Any, Reach::Any, Reach::Latest, Reach::Unused, Reach::Near]);
        let twin = self.rng.chance(12);
        let alone = self.rng.chance(3);
        Step { twin, alone, ..self.act(act, reach) }
    }

    fn act(&mut self, act: Act, reach: Reach) -> Step {
        self.names += 1;
        let (pick, size) = (self.rng.word() as u32, self.rng.word() as u32);
        Step { name: self.names, act, reach, twin: false, pick, size, alone: false }
    }

    /// Draws leaves, then nodes over values without readers. Joining the oldest values gives a balanced tree. Joining
    /// the newest with the oldest gives a caterpillar.
    fn tree(&mut self) -> Vec<Step> {
        let leaves = self.rng.between(1, 7);
        let leaf = self.rng.pick(&[Act::Call(CellName::Leaf), Act::Look]);
        let mut steps: Vec<Step> = (0..leaves).map(|_| self.act(leaf, Reach::Any)).collect();
        let reach = self.rng.pick(&[Reach::Unused, Reach::Unused, Reach::Latest]);
        for _ in 1..leaves {
            steps.push(self.act(Act::Call(CellName::Node), reach));
            if self.rng.chance(15) {
                steps.push(self.step());
            }
        }
        steps
    }

    fn chain(&mut self) -> Vec<Step> {
        let cell = self.rng.pick(&[CellName::Forward, CellName::Backward, CellName::Deep, CellName::Free]);
        let mut steps = Vec::new();
        for _ in 0..self.rng.between(1, 9) {
            steps.push(self.act(Act::Call(cell), Reach::Latest));
            if self.rng.chance(15) {
                steps.push(self.step());
            }
        }
        steps
    }

    fn lattice(&mut self) -> Vec<Step> {
        let mut steps: Vec<Step> =
            (0..self.rng.between(1, 4)).map(|_| self.act(Act::Look, Reach::Any)).collect();
        let folds = [
            Act::Call(CellName::Fold),
            Act::Call(CellName::Attend),
            Act::Call(CellName::Both),
            Act::ListFold(autobatch_ir::graph::ListFold::Mean),
            Act::WeightedSum { softmax: true },
            Act::Call(CellName::Forward),
        ];
        for _ in 0..self.rng.between(1, 8) {
            let act = self.rng.pick(&folds);
            steps.push(self.act(act, Reach::Near));
            if self.rng.chance(15) {
                steps.push(self.step());
            }
        }
        steps
    }
}
