//! File tests of the stages. The macro `folders` assigns a stage to some folders of `tests/files`. Each graph
//! `FOLDER/NAME.graph` there has a snapshot beside it, with the product of that stage.
//!
//! Comments in a graph file are directives, one a line: `; policy depth`, `; rows batch`, `; mode train`,
//! `; want %3 %5`, and `; gradients`, which makes every output a loss. The default policy is `depth`. The other
//! defaults are those of [`Request`].

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, Planner, Request, RowOrder, StageDump, stages};
use autobatch_testing::files::{assert_snapshot_beside, read_graph};
use std::path::Path;

/// Makes a test for each folder. The text is the name of the stage whose product the snapshots show.
macro_rules! folders {
    ($($folder:ident: $stage:literal),* $(,)?) => {
        $(
            #[test]
            fn $folder() {
                insta::glob!("../../tests/files", concat!(stringify!($folder), "/*.graph"), |path| check($stage, path));
            }
        )*
    };
}

folders! {
    cluster: "cluster",
    fuse: "kernels",
    storage: "storage",
    order: "order",
    lower: "lower",
    differentiate: "differentiate",
}

/// A graph of a file with its directives.
struct Case {
    graph: GraphData,
    directives: Vec<Vec<String>>,
}

impl Case {
    fn read(path: &Path) -> Self {
        let (graph, text) = read_graph(path);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let directives = text.lines().filter_map(|line| line.strip_prefix(';')).map(words).collect();
        Self { graph, directives }
    }

    /// The words of a directive after its name.
    fn directive(&self, name: &str) -> Option<&[String]> {
        self.directives
            .iter()
            .find(|words| words.first().is_some_and(|word| word == name))
            .map(|words| &words[1..])
    }

    fn word(&self, name: &str) -> Option<&str> {
        self.directive(name).map(|words| words.first().expect("the directive has a word").as_str())
    }

    fn trace(&self) -> Vec<StageDump> {
        let policy: Policy = self.word("policy").unwrap_or("depth").parse().expect("the policy exists");
        let value = |word: &String| ValueId::new(word.trim_start_matches('%').parse().expect("a value"));
        let wanted: Vec<ValueId> = self.directive("want").unwrap_or(&[]).iter().map(value).collect();
        let losses: Vec<(ValueId, f32)> =
            self.graph.outputs.iter().map(|output| (output.value, 1.0)).collect();
        let gradients =
            self.directive("gradients").map(|_| Gradients { losses: &losses, params: None, values: &[] });
        let mode = match self.word("mode") {
            Some("train") => Mode::Train,
            None if gradients.is_some() => Mode::Train,
            Some("infer") | None => Mode::Infer,
            Some(other) => panic!("there is no mode {other}"),
        };
        let rows = match self.word("rows") {
            Some("batch") => RowOrder::Batch,
            Some("propagated") | None => RowOrder::Propagated,
            Some(other) => panic!("there is no row order {other}"),
        };
        let request = Request {
            wanted: &wanted,
            mode,
            training: mode == Mode::Train,
            rows,
            gradients,
            ..Request::default()
        };
        Planner::new(policy.load().expect("the policy loads"))
            .trace(&self.graph, &request)
            .unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Compares the product of a stage with the snapshot beside the graph.
fn check(stage: &str, path: &Path) {
    let dumps = Case::read(path).trace();
    let dump = dumps.iter().find(|dump| dump.name == stage).expect("the stage exists");
    assert_snapshot_beside(path, &dump.text);
}

#[test]
fn every_stage_prints_its_product() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/files/order/chain.graph");
    let dumps = Case::read(Path::new(path)).trace();
    let found: Vec<&str> = dumps.iter().map(|dump| dump.name).collect();
    assert_eq!(found, stages().iter().map(|stage| stage.name).collect::<Vec<_>>());
    assert!(dumps.iter().all(|dump| !dump.text.is_empty()), "every stage prints its product");
    for stage in found {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(stage);
        assert!(folder.join("mod.rs").exists(), "no folder has the name {stage}");
    }
}

/// ARCHITECTURE.md follows one graph through the stages: a block `graph`, then blocks with the names of their stages.
/// The block `text` shows the steps of the product of `lower`.
#[test]
fn the_example_of_the_architecture_is_what_the_stages_make() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../ARCHITECTURE.md")).expect("a page");
    let block = |name: &str| {
        let (_, rest) = page.split_once(&format!("```{name}\n"))?;
        rest.split_once("\n```").map(|(text, _)| text.trim_end().to_owned())
    };
    let graph = GraphData::from_text(block("graph").expect("the page has a graph")).expect("it parses");
    graph.verify().expect("the graph keeps its rules");
    let policy = Policy::Depth.load().expect("needs no file");
    let dumps = Planner::new(policy).trace(&graph, &Request::default()).expect("the graph has outputs");
    for StageDump { name, text } in dumps {
        if let Some(shown) = block(name) {
            assert_eq!(shown, text.trim_end(), "ARCHITECTURE.md shows another {name}");
        }
        if name == "lower" {
            let steps =
                block("text").filter(|steps| steps.starts_with("wave")).expect("the page shows the steps");
            assert!(text.contains(&steps), "ARCHITECTURE.md shows other steps than\n{text}");
        }
    }
    let shown = stages().iter().filter(|stage| block(stage.name).is_some()).count();
    assert!(shown >= 4, "ARCHITECTURE.md shows {shown} stages");
}
