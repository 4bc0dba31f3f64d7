//! File tests of the stages. The macro `folders` assigns a stage to some folders of `tests/files`. Each graph
//! `FOLDER/NAME.graph` there has a snapshot beside it, with the product of that stage. So has each graph of
//! `tests/files/graphs`, in the same folder.
//!
//! The directives of a file are `! policy depth`, `! rows batch`, `! mode train`, `! want %3 %5`, and `! gradients`,
//! which makes every output a loss. The default policy is `depth`. The other defaults are those of [`Request`].

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_ir::types::DType;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, Planner, Request, RowOrder, StageDump, stages};
use autobatch_testing::files::{GraphFile, assert_snapshot_beside, assert_snapshot_in};
use std::path::Path;

/// The names of directives.
const DIRECTIVES: &[&str] = &["policy", "rows", "mode", "want", "gradients"];

/// Makes a test for each folder. The text is the name of the stage whose product the snapshots show.
macro_rules! folders {
    ($($folder:ident: $stage:literal),* $(,)?) => {
        $(
            #[test]
            fn $folder() {
                insta::glob!("../../tests/files", concat!(stringify!($folder), "/*.graph"), |path| check($stage, path));
                insta::glob!("../../tests/files/graphs", "*.graph", |path| check_whole($stage, stringify!($folder), path));
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

/// The products of all stages for a graph of a file.
fn trace(file: &GraphFile) -> Vec<StageDump> {
    let policy: Policy = file.word("policy").unwrap_or("depth").parse().expect("the policy exists");
    let value = |word: &String| ValueId::new(word.trim_start_matches('%').parse().expect("a value"));
    let wanted: Vec<ValueId> = file.directive("want").unwrap_or(&[]).iter().map(value).collect();
    let losses: Vec<(ValueId, f32)> = file.graph.outputs.iter().map(|output| (output.value, 1.0)).collect();
    let gradients =
        file.directive("gradients").map(|_| Gradients { losses: &losses, params: None, values: &[] });
    let mode = match file.word("mode") {
        Some("train") => Mode::Train,
        None if gradients.is_some() => Mode::Train,
        Some("infer") | None => Mode::Infer,
        Some(other) => panic!("there is no mode {other}"),
    };
    let rows = match file.word("rows") {
        Some("batch") => RowOrder::Batch,
        Some("propagated") | None => RowOrder::Propagated,
        Some(other) => panic!("there is no row order {other}"),
    };
    let training = mode == Mode::Train;
    let request = Request { wanted: &wanted, mode, training, rows, gradients, ..Request::default() };
    Planner::new(policy.load().expect("the policy loads"))
        .trace(&file.graph, &request)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The product of a stage.
fn product(stage: &str, dumps: Vec<StageDump>) -> String {
    dumps.into_iter().find(|dump| dump.name == stage).expect("the stage exists").text
}

/// Compares the product of a stage with the snapshot beside the graph.
fn check(stage: &str, path: &Path) {
    assert_snapshot_beside(path, &product(stage, trace(&GraphFile::read(path, DIRECTIVES))));
}

/// Compares the product of a stage for a graph of all kinds of ops with its snapshot in the folder of the stage. Where a stage
/// needs gradients, they are those of all scalar floats that the graph gives out.
fn check_whole(stage: &str, folder: &str, path: &Path) {
    let GraphFile { graph, .. } = &GraphFile::read(path, &[]);
    let is_loss = |value: ValueId| {
        let ty = graph.type_of(value);
        ty.dtype == DType::F32 && !ty.is_list
    };
    let outputs = graph.outputs.iter().map(|output| output.value);
    let wanted: Vec<ValueId> = (0..graph.arena.values())
        .map(ValueId::new)
        .filter(|&value| graph.outputs.is_empty() && !graph.type_of(value).is_list)
        .collect();
    let losses: Vec<(ValueId, f32)> = outputs
        .chain(wanted.iter().copied())
        .filter(|&value| is_loss(value))
        .map(|value| (value, 1.0))
        .collect();
    let needs_gradients = stage == "differentiate";
    let gradients = needs_gradients.then_some(Gradients { losses: &losses, params: None, values: &[] });
    let mode = if needs_gradients { Mode::Train } else { Mode::Infer };
    let request =
        Request { wanted: &wanted, mode, training: needs_gradients, gradients, ..Request::default() };
    let policy = Policy::Depth.load().expect("needs no file");
    let shown = match Planner::new(policy).trace(graph, &request) {
        Ok(dumps) => product(stage, dumps),
        Err(error) => format!("{error}\n"),
    };
    let files = path.parent().and_then(Path::parent).expect("the folder of all files");
    let name = path.file_stem().and_then(|name| name.to_str()).expect("text");
    assert_snapshot_in(&files.join(folder), &format!("graphs_{name}"), &shown);
}

#[test]
fn every_stage_prints_its_product() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/files/order/chain.graph");
    let dumps = trace(&GraphFile::read(Path::new(path), DIRECTIVES));
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
