//! Workload of graph networks: molecules with a class.

use serde::{Deserialize, Serialize};

use super::{Mismatch, Workload};
use crate::data::generate::molecules;
use crate::data::graphs::LabelledGraph;

/// Graphs with a label per node and a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graphs {
    /// The labels of the nodes of each graph.
    pub labels: Vec<Vec<u32>>,
    /// The edges of each graph, from a node to its neighbour; both directions of an undirected edge.
    pub edges: Vec<Vec<[u32; 2]>>,
    /// The class of each graph.
    pub classes: Vec<u32>,
}

impl Graphs {
    /// The number of labels.
    pub const LABELS: u32 = 7;
    /// The number of classes.
    pub const CLASSES: u32 = 2;

    /// Draws molecules.
    pub fn generate(seed: u64, count: usize) -> Self {
        let (mut labels, mut edges, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        for molecule in molecules::molecules(seed, count, molecules::ATOMS) {
            labels.push(molecule.labels);
            edges.push(molecule.edges);
            classes.push(u32::from(molecule.class > 0));
        }
        Graphs { labels, edges, classes }
    }

    /// Returns the graphs, with their classes as numbers.
    pub fn into_graphs(self) -> impl Iterator<Item = LabelledGraph> {
        let parts = self.labels.into_iter().zip(self.edges).zip(self.classes);
        parts.map(|((labels, edges), class)| LabelledGraph { labels, edges, class: class as i32 })
    }
}

impl Workload for Graphs {
    fn check(&self) -> Result<(), Mismatch> {
        Mismatch::unless_paired(self.labels.len(), self.edges.len(), "lists of edges")?;
        Mismatch::unless_paired(self.labels.len(), self.classes.len(), "classes")?;
        super::sequences::check_all(&self.labels, Self::LABELS, "labels of nodes")?;
        let graphs = self.labels.iter().zip(&self.edges).zip(&self.classes).enumerate();
        for (index, ((labels, edges), &class)) in graphs {
            let largest = edges.iter().flatten().copied().max().map_or(0, |node| node as usize + 1);
            let (expected, found) =
                (format!("nodes 0..{}", labels.len()), format!("node {}", largest.max(1) - 1));
            Mismatch::unless(largest <= labels.len(), index, &expected, &found)?;
            let expected = format!("classes below {}", Self::CLASSES);
            Mismatch::unless(class < Self::CLASSES, index, &expected, &format!("class {class}"))?;
        }
        Ok(())
    }
}
