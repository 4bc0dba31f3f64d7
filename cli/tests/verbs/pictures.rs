//! Tests of pictures: they are well formed, complete, and readable without animation.

use crate::{NAMES, ORDER, planned, scratch, transcript};
use autobatch_cli::files::load_plan;
use autobatch_inspector::lifetimes::Lifetimes;

/// Asserts that tags are nested correctly and attributes are quoted.
fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').expect("a tag ends");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or("");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed out of order");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} are not closed");
}

fn attribute(tag: &str, name: &str) -> Option<f64> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()?.parse().ok()
}

#[test]
fn every_node_with_a_step_is_a_dot() {
    let svg = transcript(&["show", ORDER, "--format", "svg"]);
    assert_well_formed(&svg);
    let dots = svg.lines().filter(|line| line.contains("<circle") && line.contains("<title>")).count();
    assert_eq!(dots, 15, "{svg}");
    assert!(svg.contains(">order: 15 nodes in 10 batches<"), "{svg}");
    assert!(svg.contains("bound 10, gap 0 %"));
}

#[test]
fn all_elements_are_inside_the_picture() {
    let graph = scratch("wide.abg");
    transcript(&["emit", "treelstm", "--instances", "20", "--hidden", "2", "-o", &graph]);
    let plan = planned(&graph, "wide.abp", &[]);
    for svg in
        [transcript(&["show", &graph, "--format", "svg"]), transcript(&["show", &plan, "--format", "svg"])]
    {
        assert_well_formed(&svg);
        let head = svg.lines().next().unwrap_or("");
        let (width, height) =
            (attribute(head, "width").expect("a width"), attribute(head, "height").expect("a height"));
        for line in svg.lines().skip(2) {
            for (name, most) in [("x", width), ("cx", width), ("y", height), ("cy", height)] {
                let position = attribute(line, name).unwrap_or(0.0);
                assert!((0.0..=most).contains(&position), "{name} beyond {most}: {line}");
            }
        }
        // Texts must end inside the picture; the factor estimates the width of a letter.
        for line in svg.lines().filter(|line| line.starts_with("<text") && line.contains("\"start\"")) {
            let text = line.split('>').nth(1).and_then(|rest| rest.split('<').next()).unwrap_or("");
            let (x, size) =
                (attribute(line, "x").unwrap_or(0.0), attribute(line, "font-size").unwrap_or(0.0));
            assert!(x + text.chars().count() as f64 * size * 0.62 <= width, "{line}");
        }
    }
}

#[test]
fn pictures_are_complete_without_animation() {
    for svg in [
        transcript(&["show", NAMES, "--format", "svg"]),
        transcript(&["show", &planned(NAMES, "still.plan", &[]), "--format", "svg"]),
    ] {
        for line in svg.lines().filter(|line| line.contains(" opacity=\"0\"")) {
            assert!(
                line.contains("values=\"0;1;0\""),
                "only flashing elements are invisible without animation: {line}"
            );
        }
        for line in svg.lines().filter(|line| line.contains("keyTimes=")) {
            let times =
                line.split("keyTimes=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("");
            let times: Vec<f64> = times.split(';').filter_map(|time| time.parse().ok()).collect();
            assert!(times.len() >= 3 && times.windows(2).all(|pair| pair[0] < pair[1]), "{line}");
            assert!(times[0] == 0.0 && times.iter().all(|time| *time <= 1.0), "{line}");
        }
    }
}

#[test]
fn rows_are_live_from_their_writer_to_their_last_reader() {
    let plan = load_plan(&planned(NAMES, "lives.plan", &[])).expect("the file was just written");
    let lifetimes = Lifetimes::of(&plan);
    // A state is one row with the fields h and c of three floats each; the whole row is live.
    let all: Vec<u64> = lifetimes.live.iter().map(|slabs| slabs.iter().sum()).collect();
    assert_eq!(all.len(), plan.steps.len());
    assert!(lifetimes.peak() <= plan.certificate.slab_bytes);
    assert!(all.iter().all(|&bytes| bytes > 0), "{all:?}");
    let last = all.last().expect("there are steps");
    assert_eq!(*last, 2 * 4 * 4 + 2 * 2 * 3 * 4, "two outputs, and the states that they read");
    let training =
        load_plan(&planned(NAMES, "training.plan", &["--mode", "train"])).expect("the file was just written");
    assert_eq!(
        Lifetimes::of(&training).peak(),
        lifetimes.peak(),
        "reuse changes the positions of rows, not their lifetimes"
    );
}

/// The attribute of every line that holds a word.
fn attributes(svg: &str, word: &str, name: &str) -> Vec<f64> {
    svg.lines().filter(|line| line.contains(word)).filter_map(|line| attribute(line, name)).collect()
}

#[test]
fn instances_are_drawn_by_themselves_with_numbered_batches() {
    const TREES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/trees.graph");
    let svg = transcript(&["show", TREES, "--picture", "instances", "--format", "svg"]);
    assert_well_formed(&svg);
    assert!(svg.contains(">3 instances, 22 nodes in 5 batches<"), "{svg}");
    for entry in [">@leaf x 11<", ">@node x 4<", ">@node x 3<", ">@node x 1<", ">@out x 3<"] {
        assert!(svg.contains(entry), "{entry} is missing in\n{svg}");
    }
    let dots: Vec<&str> =
        svg.lines().filter(|line| line.contains("<circle") && line.contains("<title>")).collect();
    assert_eq!(dots.len(), 22);
    let colours: std::collections::BTreeSet<&str> =
        dots.iter().filter_map(|dot| dot.split("fill=\"").nth(1)?.split('"').next()).collect();
    assert_eq!(colours.len(), 5, "one colour for each batch");
}

#[test]
fn small_batches_stay_visible_beside_large_ones() {
    let graph = scratch("bars.abg");
    transcript(&["emit", "treelstm", "--instances", "8", "--hidden", "2", "-o", &graph]);
    let svg = transcript(&["show", &graph, "--format", "svg"]);
    let bars = attributes(&svg, "<title>step ", "height");
    let (least, most) =
        (bars.iter().copied().fold(f64::MAX, f64::min), bars.iter().copied().fold(0.0, f64::max));
    assert!(most > 45.0 && least >= 2.0, "{bars:?}");
    assert!(svg.contains("second shade: the next batch of the same kernel"));
    assert!(svg.contains(">(square root)<"));
}

#[test]
fn edges_that_skip_columns_run_along_their_band() {
    let graph = scratch("rails.abg");
    transcript(&["emit", "treelstm", "--instances", "3", "--hidden", "2", "-o", &graph]);
    let svg = transcript(&["show", &graph, "--format", "svg"]);
    let far = svg.lines().filter(|line| line.contains("stroke=\"#ccd3da\"")).count();
    let near = svg.lines().filter(|line| line.contains("stroke=\"#98a3af\"")).count();
    assert!(far > 0 && near > 0, "{far} {near}");
    assert!(svg.lines().filter(|line| line.contains("#ccd3da")).all(|line| line.contains('H')));
}
