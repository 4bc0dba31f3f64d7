//! Pictures are well formed, show everything once, and are complete when nothing moves.

use crate::{NAMES, ORDER, planned, says, scratch};
use autobatch_cli::files::load_plan;
use autobatch_cli::lifetimes::Lifetimes;

/// Every tag is closed in its order; attributes are quoted.
fn well_formed(svg: &str) {
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
    assert!(open.is_empty(), "{open:?} stay open");
}

fn attribute(tag: &str, name: &str) -> Option<f64> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()?.parse().ok()
}

#[test]
fn every_node_with_a_step_is_a_dot_in_its_column() {
    let svg = says(&["show", ORDER, "--format", "svg"]);
    well_formed(&svg);
    let dots = svg.lines().filter(|line| line.contains("<circle") && line.contains("<title>")).count();
    assert_eq!(dots, 15, "{svg}");
    assert!(svg.contains(">order: 15 nodes in 10 batches<"), "{svg}");
    assert!(svg.contains("bound 10, gap 0 %"));
}

#[test]
fn nothing_leaves_the_picture() {
    let graph = scratch("wide.abg");
    says(&["emit", "trees", "--instances", "20", "--hidden", "2", "-o", &graph]);
    let plan = planned(&graph, "wide.abp", &[]);
    for svg in [says(&["show", &graph, "--format", "svg"]), says(&["show", &plan, "--format", "svg"])] {
        well_formed(&svg);
        let head = svg.lines().next().unwrap_or("");
        let (width, height) =
            (attribute(head, "width").expect("a width"), attribute(head, "height").expect("a height"));
        for line in svg.lines().skip(2) {
            for (name, most) in [("x", width), ("cx", width), ("y", height), ("cy", height)] {
                let place = attribute(line, name).unwrap_or(0.0);
                assert!((0.0..=most).contains(&place), "{name} beyond {most}: {line}");
            }
        }
        // About what a letter takes; texts must end inside.
        for line in svg.lines().filter(|line| line.starts_with("<text") && line.contains("\"start\"")) {
            let text = line.split('>').nth(1).and_then(|rest| rest.split('<').next()).unwrap_or("");
            let (x, size) =
                (attribute(line, "x").unwrap_or(0.0), attribute(line, "font-size").unwrap_or(0.0));
            assert!(x + text.chars().count() as f64 * size * 0.62 <= width, "{line}");
        }
    }
}

#[test]
fn a_renderer_that_knows_no_animation_shows_the_finished_picture() {
    for svg in [
        says(&["show", NAMES, "--format", "svg"]),
        says(&["show", &planned(NAMES, "still.plan", &[]), "--format", "svg"]),
    ] {
        for line in svg.lines().filter(|line| line.contains(" opacity=\"0\"")) {
            assert!(line.contains("values=\"0;1;0\""), "only what flashes is unseen at rest: {line}");
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
fn rows_live_from_their_writer_to_their_last_reader() {
    let plan = load_plan(&planned(NAMES, "lives.plan", &[])).expect("just written");
    let lifetimes = Lifetimes::of(&plan);
    // A state is one row of two fields of three floats, h and c, which lives as a whole.
    let all: Vec<u64> = lifetimes.live.iter().map(|slabs| slabs.iter().sum()).collect();
    assert_eq!(all.len(), plan.steps.len());
    assert!(lifetimes.peak() <= plan.certificate.slab_bytes);
    assert!(all.iter().all(|&bytes| bytes > 0), "{all:?}");
    let last = all.last().expect("there are steps");
    assert_eq!(
        *last,
        2 * 4 * 4 + 2 * 2 * 3 * 4,
        "two outputs, and the states of both names, which they read"
    );
    let kept = load_plan(&planned(NAMES, "kept.plan", &["--mode", "train"])).expect("just written");
    assert_eq!(
        Lifetimes::of(&kept).peak(),
        lifetimes.peak(),
        "reuse changes where rows lie, not when they live"
    );
}
