//! Tasks with one class per graph.

use super::answer::{Answer, PredictError, Unknown, answered, classified};
use super::chunks::Units;
use super::parts::{Parts, Published};
use super::task::{Input, Task, Widths};
use crate::catalogue::{Opened, Sizes, opened};
use crate::data::DataError;
use crate::data::generate::molecules;
use crate::data::graphs::{self, LabelledGraph};
use crate::data::peers;
use crate::data::vocab::Vocab;
use crate::graphs::{GraphClassifier, Numbered};
use autobatch::Session;
use autobatch::prelude::ModuleBuilder;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::path::Path;

/// Graphs with labelled nodes and a class.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Graphs<M> {
    labels: Vocab,
    classes: Vec<i32>,
    #[serde(skip)]
    model: PhantomData<M>,
}

fn numbered(graph: &LabelledGraph, labels: Vec<u32>, class: u32) -> Numbered {
    Numbered { labels, neighbours: graph.neighbours(), class }
}

impl<M: GraphClassifier + Clone + 'static> Task for Graphs<M> {
    type Item = LabelledGraph;
    type Model = M;

    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
        let graphs: peers::Graphs = sizes.read(peers::Graphs::generate)?;
        let (labels, classes) = (peers::Graphs::LABELS as usize, peers::Graphs::CLASSES as usize);
        let model = M::declare(m, labels, classes, sizes.hidden);
        let numbered = |graph: LabelledGraph| numbered(&graph, graph.labels.clone(), graph.class as u32);
        opened(model, graphs.into_graphs().map(numbered).collect())
    }

    fn read(folder: &Path) -> Result<Published<LabelledGraph>, DataError> {
        Ok(Published::whole(graphs::read(folder)?, 200))
    }

    fn generate(seed: u64, count: usize) -> Vec<LabelledGraph> {
        molecules::molecules(seed, count, molecules::ATOMS)
    }

    const UNITS: Units = Units::Whole;

    fn parse(input: Input<'_>) -> Result<Vec<LabelledGraph>, DataError> {
        input.folder(&format!("NAME{}", graphs::ENDINGS.join(" NAME")), graphs::read_inputs)
    }

    fn learn(parts: &Parts<LabelledGraph>) -> Self {
        let spelled: Vec<String> =
            parts.train.iter().flat_map(|graph| &graph.labels).map(u32::to_string).collect();
        let labels = Vocab::build(spelled.iter().map(String::as_str), 1);
        let mut classes: Vec<i32> = parts.all().map(|graph| graph.class).collect();
        classes.sort_unstable();
        classes.dedup();
        Graphs { labels, classes, model: PhantomData }
    }

    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> M {
        M::declare(m, self.labels.size(), self.classes.len().max(1), widths.hidden)
    }

    fn number(&self, graph: &LabelledGraph) -> Result<Numbered, String> {
        let class = match graph.class {
            0 => 0,
            class => self.classes.iter().position(|&known| known == class).ok_or_else(|| {
                let known: Vec<String> = self.classes.iter().map(i32::to_string).collect();
                format!("the model has no class {class}; it knows {}", known.join(", "))
            })?,
        };
        let labels = graph.labels.iter().map(|label| self.labels.id(&label.to_string())).collect();
        Ok(numbered(graph, labels, class as u32))
    }

    fn count_unknown(&self, graph: &LabelledGraph, unknown: &mut Unknown) {
        for label in graph.labels.iter().map(u32::to_string) {
            unknown.count("labels", self.labels.id(&label), &label);
        }
    }

    fn size(graph: &LabelledGraph) -> usize {
        graph.labels.len()
    }

    fn predict(
        &self,
        model: M,
        session: &mut Session,
        items: &[LabelledGraph],
    ) -> Result<Vec<Answer>, PredictError> {
        let mut numbers = 1..;
        let class = |class: usize| self.classes.get(class).map(i32::to_string).unwrap_or_default();
        answered(self, model, session, items, |_, rows| {
            let number = numbers.next().unwrap_or(0).to_string();
            classified("graph", &number, rows.first(), class)
        })
    }
}
