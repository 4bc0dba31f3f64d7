//! The costs of steps and of planning on a machine, as data.
//!
//! A [`CostTable`] is measured once per machine and stored as JSON; policy `auto` reads it. Its model is linear: a step of `n`
//! rows costs a fixed cost plus `n` times a cost per row. A schedule changes the *number* of steps, weighted by their fixed
//! costs, and a calibration fits a line.
//!
//! ```text
//! step  = step_ns + sum over stages s of (fixed_ns + weights(s) * weight_ns) + rows * sum over s of (row_ns + units(s) * unit_ns)
//!         + gathered rows * (gathered_row_ns + bytes of the row * gathered_byte_ns)
//! ```
//! A stage belongs to one [`Class`]. `weights` are the parameter elements that the stage reads for any number of rows. `units` are
//! the elementary operations per row: multiply-adds of a product, elements times instructions of a map, elements otherwise.
//! [`Work::of`](crate::Work::of) counts both for a kernel.
//!
//! The table also has the cost of planning, because a search does not pay if it costs more than the steps that it saves.

use autobatch_ir::files::read_text_at_most;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Largest width of a beam.
pub(super) const MAX_WIDTH: u32 = 4096;

/// Environment variable with the path of a cost table.
pub const COSTS_VARIABLE: &str = "AUTOBATCH_COSTS";

/// Largest size of a table file.
const MAX_BYTES: u64 = 1 << 20;

/// Declares the cost classes, and a cost for each.
macro_rules! classes {
    ($($(#[$doc:meta])+ $class:ident $field:ident,)+) => {
        /// The cost class of a stage.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Class {
            $($(#[$doc])+ $class,)+
        }

        impl Class {
            /// All classes, by number.
            pub const ALL: [Self; [$(Self::$class),+].len()] = [$(Self::$class),+];
        }

        /// Costs of all classes.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct ClassCosts {
            $($(#[$doc])+ pub $field: ClassCost,)+
        }

        impl ClassCosts {
            /// The costs of a class.
            #[must_use]
            pub fn of(&self, class: Class) -> ClassCost {
                match class {
                    $(Class::$class => self.$field,)+
                }
            }

            /// The costs of a class, for changes.
            pub fn of_mut(&mut self, class: Class) -> &mut ClassCost {
                match class {
                    $(Class::$class => &mut self.$field,)+
                }
            }
        }
    };
}

classes! {
    /// A product with parameters. A unit is a multiply-add.
    Product product,
    /// Elementwise instructions without transcendental functions. A unit is one instruction on one element.
    Map map,
    /// Elementwise transcendental functions (`tanh`, `sigmoid`, `exp`, ..). A unit is one function on one element.
    Function function,
    /// An op over a whole value (softmax, reductions, losses). A unit is an element that it reads.
    Row row,
    /// A fold over a list. A unit is an element of one listed value.
    Fold fold,
    /// A row of a table. A unit is an element.
    Lookup lookup,
}

/// Costs of one class of stages, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassCost {
    /// Cost of a stage of a step, before its first row.
    pub fixed_ns: f64,
    /// Cost of a parameter element that a stage reads once per step.
    pub weight_ns: f64,
    /// Cost of a row of a stage.
    pub row_ns: f64,
    /// Cost of a unit of work of a row; [`Class`] defines the unit.
    pub unit_ns: f64,
}

/// The measured gain of a beam: its share of the batches between the order of the ratio and the bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeamGain {
    /// The width.
    pub width: u32,
    /// The share, 0 to 1.
    pub share: f64,
}

/// The cost of planning, in nanoseconds of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanningCost {
    /// Cost of a node, for all of planning but the search of hard parts.
    pub node_ns: f64,
    /// Cost of a node of a hard part, for its order by ratio.
    pub ratio_ns: f64,
    /// Cost of a unit of work of a beam: an operand edge visited by a state, in either direction.
    pub beam_ns: f64,
    /// The gains of beams, ascending by width. `auto` considers only these widths.
    pub gains: Vec<BeamGain>,
}

/// The costs of steps and of planning on a machine. [`Default`] was measured on one server core with AVX-512.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostTable {
    /// The version of the file format: [`CostTable::VERSION`].
    pub version: u32,
    /// A description of the machine: processor, instruction set, threads.
    pub machine: String,
    /// Cost of a step before its kernel runs: finding operands and kernel.
    pub step_ns: f64,
    /// Extra cost of an operand row that is read through a table.
    pub gathered_row_ns: f64,
    /// Extra cost of a byte of such a row.
    pub gathered_byte_ns: f64,
    /// The costs of stages, by class.
    pub classes: ClassCosts,
    /// The cost of planning.
    pub planning: PlanningCost,
}

impl Default for CostTable {
    fn default() -> Self {
        let class = |fixed_ns, weight_ns, row_ns, unit_ns| ClassCost { fixed_ns, weight_ns, row_ns, unit_ns };
        Self {
            version: Self::VERSION,
            machine: "server core, avx512, 1 thread".to_owned(),
            step_ns: 250.0,
            gathered_row_ns: 1.0,
            gathered_byte_ns: 0.02,
            classes: ClassCosts {
                product: class(60.0, 0.03, 4.0, 0.011),
                map: class(15.0, 0.0, 2.0, 0.05),
                function: class(15.0, 0.0, 2.0, 0.35),
                row: class(30.0, 0.0, 20.0, 0.5),
                fold: class(30.0, 0.0, 10.0, 0.1),
                lookup: class(30.0, 0.0, 5.0, 0.03),
            },
            planning: PlanningCost {
                node_ns: 60.0,
                ratio_ns: 60.0,
                beam_ns: 12.0,
                gains: vec![BeamGain { width: 1, share: 0.45 }, BeamGain { width: 8, share: 0.6 }],
            },
        }
    }
}

impl CostTable {
    /// The version of the file format that this library reads and writes.
    pub const VERSION: u32 = 1;

    /// Reads a table from JSON.
    ///
    /// # Errors
    /// If the text is not a table, or a cost is not a finite number of at least zero.
    pub fn from_json(text: &str) -> Result<Self, CostError> {
        let rejected =
            |error| CostError(format!("cost table: {error}; write a new one with `autobatch calibrate`"));
        let table: Self = serde_json::from_str(text).map_err(rejected)?;
        table.checked()
    }

    /// Writes the table as JSON. Equal tables give equal text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and names have a JSON form")
    }

    /// Reads a table from a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a table.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, CostError> {
        let path = path.as_ref();
        let file = path.display();
        let unreadable =
            |error| CostError(format!("cannot read the cost table {file}: {error}; check the path"));
        let text = read_text_at_most(path, MAX_BYTES).map_err(unreadable)?;
        Self::from_json(&text).map_err(|error| CostError(format!("{file}: {error}")))
    }

    /// The table in the file of [`COSTS_VARIABLE`], or the default if the variable is unset or empty.
    ///
    /// # Errors
    /// As [`CostTable::load`].
    pub fn from_env() -> Result<Self, CostError> {
        match std::env::var_os(COSTS_VARIABLE) {
            Some(file) if !file.is_empty() => Self::load(PathBuf::from(file)),
            _ => Ok(Self::default()),
        }
    }

    /// The cost of a step with an unknown kernel: that of a product with 2^16 weights.
    #[must_use]
    pub fn typical(&self) -> StepCost {
        let ClassCost { fixed_ns, weight_ns, row_ns, unit_ns } = self.classes.product;
        let weights = f64::from(1 << 16);
        StepCost { fixed: self.step_ns + fixed_ns + weights * weight_ns, row: row_ns + weights * unit_ns }
    }

    /// Every cost with its name.
    fn costs(&self) -> impl Iterator<Item = (String, f64)> {
        let Self { version: _, machine: _, step_ns, gathered_row_ns, gathered_byte_ns, classes, planning } =
            self;
        let PlanningCost { node_ns, ratio_ns, beam_ns, gains } = planning;
        let plain = [
            ("step_ns", *step_ns),
            ("gathered_row_ns", *gathered_row_ns),
            ("gathered_byte_ns", *gathered_byte_ns),
            ("planning.node_ns", *node_ns),
            ("planning.ratio_ns", *ratio_ns),
            ("planning.beam_ns", *beam_ns),
        ];
        let of_classes = Class::ALL.map(|class| {
            let ClassCost { fixed_ns, weight_ns, row_ns, unit_ns } = classes.of(class);
            [("fixed_ns", fixed_ns), ("weight_ns", weight_ns), ("row_ns", row_ns), ("unit_ns", unit_ns)]
                .map(|(name, cost)| (format!("classes.{class:?}.{name}").to_lowercase(), cost))
        });
        let shares = gains.iter().map(|gain| (format!("planning.gains of width {}", gain.width), gain.share));
        let plain = plain.into_iter().map(|(name, cost)| (name.to_owned(), cost));
        plain.chain(of_classes.into_iter().flatten()).chain(shares)
    }

    fn checked(self) -> Result<Self, CostError> {
        if self.version != Self::VERSION {
            return Err(CostError(format!(
                "cost table: expected version {}, found {}; write a new one with `autobatch calibrate`",
                Self::VERSION,
                self.version
            )));
        }
        if let Some((name, found)) = self.costs().find(|(_, cost)| !cost.is_finite() || *cost < 0.0) {
            let message = format!("cost table: {name} is {found}, expected a finite number of at least 0");
            return Err(CostError(message));
        }
        let gains = &self.planning.gains;
        let ascending = gains.windows(2).all(|pair| pair[0].width < pair[1].width);
        let sound = gains.iter().all(|gain| (1..=MAX_WIDTH).contains(&gain.width) && gain.share <= 1.0);
        if !ascending || !sound {
            return Err(CostError(format!(
                "cost table: planning.gains: expected ascending widths of 1 to {} and shares of at most 1",
                MAX_WIDTH
            )));
        }
        Ok(self)
    }
}

/// The reason why a text or file is not a cost table.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CostError(String);

autobatch_ir::debug_as_display!(CostError);

/// The cost of a step of one type, `fixed + rows * row`, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepCost {
    /// Cost before the first row, which one batch less saves.
    pub fixed: f64,
    /// Cost of a row.
    pub row: f64,
}

impl StepCost {
    /// The cost of a step of `rows` rows.
    #[must_use]
    pub fn of_step(&self, rows: u32) -> f64 {
        self.fixed + f64::from(rows) * self.row
    }
}
