//! The stages of planning in their order: the one table from which help and reports speak.
//!
//! A stage's name is the name of its file, whose head says what it needs and ensures. The column of
//! bits says whether a stage may change what is computed; none of today's may.

/// A stage of planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name, which is that of its file.
    pub name: &'static str,
    /// What it turns into what.
    pub turns: &'static str,
    /// What it does, in a sentence.
    pub what: &'static str,
    /// Whether values keep their bits whatever it decides.
    pub keeps_forward_bits: bool,
    /// Whether gradients of parameters keep their bits whatever it decides.
    pub keeps_gradient_bits: bool,
}

/// Every stage, in the order in which [`Planner::plan`](crate::Planner::plan) runs them.
pub const STAGES: [Stage; 6] = [
    Stage {
        name: "cluster",
        turns: "graph -> jobs",
        what: "Keeps what wanted values need and gives nodes that may share a batch one type number.",
        keeps_forward_bits: true,
        keeps_gradient_bits: true,
    },
    Stage {
        name: "schedule",
        turns: "jobs -> batches",
        what: "Orders the jobs into batches by the chosen policy and bounds from below how many there must be.",
        keeps_forward_bits: true,
        keeps_gradient_bits: false,
    },
    Stage {
        name: "storage",
        turns: "signatures -> fields",
        what: "Gives results that meet at an operand one field, and results that travel together one slab.",
        keeps_forward_bits: true,
        keeps_gradient_bits: true,
    },
    Stage {
        name: "order",
        turns: "batches -> waves and rows",
        what: "Sorts batches into waves, lets consumers decide the order of lanes, and reuses rows that are read no more.",
        keeps_forward_bits: true,
        keeps_gradient_bits: false,
    },
    Stage {
        name: "compile",
        turns: "signatures -> kernels",
        what: "Inlines a cell into one straight program over a row, with views for copies and fused elementwise lines.",
        keeps_forward_bits: true,
        keeps_gradient_bits: true,
    },
    Stage {
        name: "lower",
        turns: "rows and kernels -> plan",
        what: "Writes steps whose operands are ranges of rows where they can be and tables where they must.",
        keeps_forward_bits: true,
        keeps_gradient_bits: true,
    },
];

#[cfg(test)]
mod tests {
    use super::STAGES;
    use std::path::Path;

    #[test]
    fn a_stage_has_the_name_of_its_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for stage in STAGES {
            let file = folder.join(format!("{}.rs", stage.name));
            let module = folder.join(stage.name).join("mod.rs");
            assert!(file.exists() || module.exists(), "no file is called {}", stage.name);
        }
    }
}
