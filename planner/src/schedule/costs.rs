//! What steps and planning cost on a machine: data, so that policies predict instead of believing.
//!
//! A [`CostTable`] is measured once per machine, kept as JSON, and read by policy `auto`. Its model is linear on purpose: a step
//! of `n` rows costs a fixed cost and `n` times a cost per row, so what a schedule changes is the *number* of steps, weighted
//! by what each kind of step costs before its first row; and whoever calibrates fits a line.
//!
//! ```text
//! step  = step_ns + sum over stages s of (fixed_ns + weights(s) * weight_ns) + rows * sum over s of (row_ns + units(s) * unit_ns)
//!         + gathered rows * (gathered_row_ns + bytes of the row * gathered_byte_ns)
//! ```
//! where a stage belongs to one [`Class`], `weights` are the parameter elements that the stage reads whatever the number of rows,
//! and `units` the elementary operations of one row: multiply-adds of a product, elements times instructions of a map, elements of
//! the others. [`Work::of`](crate::Work::of) counts both for a kernel.
//!
//! Planning is in the table for the same reason: a search that costs more than the steps it saves does not pay.

use autobatch_ir::files::read_text_at_most;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// The environment variable that names a file with a cost table.
pub const COSTS_VARIABLE: &str = "AUTOBATCH_COSTS";

/// Largest file that is read as a table.
const MOST_BYTES: u64 = 1 << 20;

/// What a stage of a kernel does, as far as its cost goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A product with parameters; a unit is a multiply-add.
    Product,
    /// Elementwise instructions without transcendental functions; a unit is one instruction on one element.
    Map,
    /// Elementwise transcendental functions (`tanh`, `sigmoid`, `exp`, ..); a unit is one of them on one element.
    Function,
    /// An op that looks at a value as a whole (softmax, reductions, losses); a unit is an element that it reads.
    Row,
    /// A fold over a list; a unit is an element of one listed value.
    Fold,
    /// A row of a table; a unit is an element.
    Lookup,
}

impl Class {
    /// All classes, in the order of their numbers.
    pub const ALL: [Class; 6] =
        [Class::Product, Class::Map, Class::Function, Class::Row, Class::Fold, Class::Lookup];
}

/// Costs of one class of stages, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassCost {
    /// Each stage of a step, before its first row.
    pub fixed_ns: f64,
    /// Each parameter element that a step's stage reads, however many rows it has.
    pub weight_ns: f64,
    /// Each row of a stage.
    pub row_ns: f64,
    /// Each unit of work of a row; see [`Class`] for what a unit is.
    pub unit_ns: f64,
}

/// Costs of all classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassCosts {
    /// See [`Class::Product`].
    pub product: ClassCost,
    /// See [`Class::Map`].
    pub map: ClassCost,
    /// See [`Class::Function`].
    pub function: ClassCost,
    /// See [`Class::Row`].
    pub row: ClassCost,
    /// See [`Class::Fold`].
    pub fold: ClassCost,
    /// See [`Class::Lookup`].
    pub lookup: ClassCost,
}

impl ClassCosts {
    /// The costs of a class.
    #[must_use]
    pub fn of(&self, class: Class) -> ClassCost {
        match class {
            Class::Product => self.product,
            Class::Map => self.map,
            Class::Function => self.function,
            Class::Row => self.row,
            Class::Fold => self.fold,
            Class::Lookup => self.lookup,
        }
    }

    /// The costs of a class, to be set.
    pub fn of_mut(&mut self, class: Class) -> &mut ClassCost {
        match class {
            Class::Product => &mut self.product,
            Class::Map => &mut self.map,
            Class::Function => &mut self.function,
            Class::Row => &mut self.row,
            Class::Fold => &mut self.fold,
            Class::Lookup => &mut self.lookup,
        }
    }
}

/// What a beam of some width has been seen to win, as a share of the batches between the ratio's order and the bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeamGain {
    /// The width.
    pub width: u32,
    /// The share won, 0 to 1.
    pub share: f64,
}

/// What planning costs, in nanoseconds of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanningCost {
    /// Each node, for all of planning but the search of hard parts.
    pub node_ns: f64,
    /// Each node of a hard part, for its order by ratio.
    pub ratio_ns: f64,
    /// Each unit of a beam's work: an operand edge visited by a kept state, in either direction.
    pub beam_ns: f64,
    /// What beams win, ascending by width; `auto` considers these widths and no others.
    pub gains: Vec<BeamGain>,
}

/// What steps and planning cost on a machine. [`Default`] is what was measured on a server core with AVX-512, one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostTable {
    /// The form of the file: [`CostTable::VERSION`].
    pub version: u32,
    /// What was measured, in words: processor, instruction set, threads.
    pub machine: String,
    /// Each step of a plan, whatever it does: finding its operands and its kernel.
    pub step_ns: f64,
    /// Each operand row that is read through a table instead of in place.
    pub gathered_row_ns: f64,
    /// Each byte of such a row.
    pub gathered_byte_ns: f64,
    /// Stages by class.
    pub classes: ClassCosts,
    /// Planning itself.
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
    /// The form of tables that this library reads and writes.
    pub const VERSION: u32 = 1;

    /// Reads a table from JSON.
    ///
    /// # Errors
    /// If the text is no table, or holds a cost that is no finite number of at least zero.
    pub fn from_json(text: &str) -> Result<Self, CostError> {
        let table: Self =
            serde_json::from_str(text).map_err(|error| CostError::Form { message: error.to_string() })?;
        table.checked()
    }

    /// Writes the table as JSON; equal tables give equal text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and names have a JSON form")
    }

    /// Reads a table from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or is no table.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, CostError> {
        let path = path.as_ref();
        let unreadable = |message: String| CostError::Read { file: path.to_owned(), message };
        let text = read_text_at_most(path, MOST_BYTES).map_err(|error| unreadable(error.to_string()))?;
        Self::from_json(&text)
            .map_err(|error| CostError::File { file: path.to_owned(), error: Box::new(error) })
    }

    /// The table in the file that [`COSTS_VARIABLE`] names; the default if the variable is not set or empty.
    ///
    /// # Errors
    /// As [`CostTable::load`].
    pub fn from_env() -> Result<Self, CostError> {
        match std::env::var_os(COSTS_VARIABLE) {
            Some(file) if !file.is_empty() => Self::load(PathBuf::from(file)),
            _ => Ok(Self::default()),
        }
    }

    /// The cost of a step where nothing is known of its kernel: that of a product with 2^16 weights.
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
            return Err(CostError::Version { found: self.version });
        }
        if let Some((name, found)) = self.costs().find(|(_, cost)| !cost.is_finite() || *cost < 0.0) {
            return Err(CostError::Cost { name, found });
        }
        let gains = &self.planning.gains;
        let ascending = gains.windows(2).all(|pair| pair[0].width < pair[1].width);
        let sound =
            gains.iter().all(|gain| (1..=super::policy::WIDEST).contains(&gain.width) && gain.share <= 1.0);
        if !ascending || !sound {
            return Err(CostError::Gains);
        }
        Ok(self)
    }
}

/// Why there is no cost table.
#[derive(Clone, Debug, PartialEq)]
pub enum CostError {
    /// The file cannot be read.
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        message: String,
    },
    /// The file holds no table.
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with its text.
        error: Box<CostError>,
    },
    /// The text is no JSON, or has other fields than a table.
    Form {
        /// What is wrong, and where.
        message: String,
    },
    /// The table has a form that is not known here.
    Version {
        /// The number of the form.
        found: u32,
    },
    /// A cost is no finite number of at least zero.
    Cost {
        /// Which.
        name: String,
        /// What it is.
        found: f64,
    },
    /// Beam widths do not ascend, are out of range, or win more than there is.
    Gains,
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { file, message } => {
                write!(f, "cannot read the cost table {}: {message}; check the path", file.display())
            }
            Self::File { file, error } => write!(f, "{}: {error}", file.display()),
            Self::Form { message } => {
                write!(f, "cost table: {message}; write a new one with `autobatch calibrate`")
            }
            Self::Version { found } => write!(
                f,
                "cost table: expected version {}, found {found}; write a new one with `autobatch calibrate`",
                CostTable::VERSION
            ),
            Self::Cost { name, found } => {
                write!(f, "cost table: {name} is {found}, expected a finite number of at least 0")
            }
            Self::Gains => write!(
                f,
                "cost table: planning.gains: expected ascending widths of 1 to {} and shares of at most 1",
                super::policy::WIDEST
            ),
        }
    }
}

impl std::error::Error for CostError {}

/// What a step of one type costs: `fixed + rows * row`, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepCost {
    /// Before its first row: what one batch less saves.
    pub fixed: f64,
    /// Each row.
    pub row: f64,
}

impl StepCost {
    /// Of a step of `rows` rows.
    #[must_use]
    pub fn of_step(&self, rows: u32) -> f64 {
        self.fixed + f64::from(rows) * self.row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_reads_what_it_wrote() {
        let table = CostTable { machine: "test".to_owned(), ..CostTable::default() };
        assert_eq!(CostTable::from_json(&table.to_json()), Ok(table));
    }

    #[test]
    fn a_price_that_is_no_price_is_refused_by_name() {
        let refused = |change: fn(&mut CostTable)| {
            let mut table = CostTable::default();
            change(&mut table);
            CostTable::from_json(&table.to_json()).expect_err("refused").to_string()
        };
        assert!(refused(|table| table.step_ns = -1.0).contains("step_ns is -1"));
        assert!(refused(|table| table.classes.fold.row_ns = -2.0).contains("classes.fold.row_ns"));
        assert!(refused(|table| table.version = 9).contains("expected version 1, found 9"));
        assert!(refused(|table| table.planning.gains.reverse()).contains("ascending"));
        assert!(refused(|table| table.planning.gains[0].share = 1.5).contains("at most 1"));
    }

    #[test]
    fn unknown_and_missing_fields_are_refused() {
        let text = CostTable::default().to_json();
        let more = text.replacen("\"version\"", "\"speed\": 1, \"version\"", 1);
        assert!(CostTable::from_json(&more).expect_err("refused").to_string().contains("speed"));
        let less = text.replacen("\"step_ns\"", "\"steps\"", 1);
        assert!(matches!(CostTable::from_json(&less), Err(CostError::Form { .. })));
    }

    #[test]
    fn a_missing_file_is_an_error_that_names_it() {
        let error = CostTable::load("no/such/costs.json").expect_err("there is no file").to_string();
        assert!(error.contains("no/such/costs.json"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_without_end_is_refused() {
        let error = CostTable::load("/dev/zero").expect_err("it has no end").to_string();
        assert!(error.contains("at most 1048576 bytes"), "{error}");
    }
}
