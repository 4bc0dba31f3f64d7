//! Graphs with a class each, in the format of the TU collection (MUTAG, PROTEINS, ENZYMES, ...).
//!
//! A data set is a folder of text files whose names begin with that of the set. Line n of `_graph_indicator` has the number of
//! the graph to which node n belongs; `_node_labels` has the label of the node. Each line of `_A` is an edge from one node to
//! another, `1, 2`; an edge without a direction has two lines. Line n of `_graph_labels` has the class of graph n. Nodes and
//! graphs are counted from 1, and the nodes of a graph follow each other.

use std::path::Path;

use super::error::DataError;
use super::text::{Piece, decode, lines, read_with};

/// A graph and its class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelledGraph {
    /// The label of every node, at least one.
    pub labels: Vec<u32>,
    /// The edges: from this node to that one, counted from 0.
    pub edges: Vec<[u32; 2]>,
    /// The class; 0 stands for an unknown one.
    pub class: i32,
}

impl LabelledGraph {
    /// The nodes to which the edges of each node lead, in the order of the edges.
    pub fn neighbours(&self) -> Vec<Vec<u32>> {
        let mut neighbours = vec![Vec::new(); self.labels.len()];
        for &[from, to] in &self.edges {
            neighbours[from as usize].push(to);
        }
        neighbours
    }
}

/// The endings of the files of a data set, in the order of [`Contents`].
pub const ENDINGS: [&str; 4] = ["_A.txt", "_graph_indicator.txt", "_graph_labels.txt", "_node_labels.txt"];

/// The contents of the files of a data set, in the order of [`ENDINGS`]. The last two may be missing: without classes all
/// classes are 0, and without labels all labels are 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents<T> {
    /// The edges.
    pub edges: T,
    /// The graph of every node.
    pub indicator: T,
    /// The class of every graph.
    pub classes: Option<T>,
    /// The label of every node.
    pub labels: Option<T>,
}

/// Reads graphs from the contents of the files of a data set; `name` is the beginning of their names.
///
/// # Errors
/// A file has another form, or the files contradict each other.
pub fn parse<T: AsRef<[u8]>>(contents: &Contents<T>, name: &str) -> Result<Vec<LabelledGraph>, DataError> {
    let [edges, indicator, classes, labels] = ENDINGS.map(|ending| format!("{name}{ending}"));
    let mut graphs: Vec<LabelledGraph> = Vec::new();
    // The graph of every node, and its number there.
    let mut places: Vec<[u32; 2]> = Vec::new();
    for line in lines(decode(contents.indicator.as_ref(), &indicator)?, &indicator) {
        let count = graphs.len() as u32;
        let number = line.number(u32::MAX, "the number of a graph")?;
        if number == count + 1 {
            graphs.push(LabelledGraph::default());
        } else if number != count || count == 0 {
            let expected = match count {
                0 => "graph 1, because the numbers of graphs ascend from 1".to_owned(),
                _ => format!("graph {count} or {}, because the numbers of graphs ascend", count + 1),
            };
            return Err(line.error_found(expected, number.to_string()));
        }
        let graph = graphs.last_mut().expect("a graph was added");
        places.push([number - 1, graph.labels.len() as u32]);
        graph.labels.push(0);
    }
    for line in lines(decode(contents.edges.as_ref(), &edges)?, &edges) {
        let ends: [Piece<'_>; 2] = line.fields(',', "two nodes, such as `1, 2`")?;
        let mut found = [[0; 2]; 2];
        for (found, end) in found.iter_mut().zip(ends) {
            let end = end.trimmed();
            let number = end.number(u32::MAX, "the number of a node")?;
            let place = (number as usize).checked_sub(1).and_then(|node| places.get(node));
            let expected = || format!("a node 1..{}, one per line of {indicator}", places.len());
            *found = *place.ok_or_else(|| end.error_found(expected(), number.to_string()))?;
        }
        let [from, to] = found;
        if from[0] != to[0] {
            let found = format!("nodes of graphs {} and {}", from[0] + 1, to[0] + 1);
            return Err(line.error_found("two nodes of one graph", found));
        }
        graphs[from[0] as usize].edges.push([from[1], to[1]]);
    }
    if let Some(content) = &contents.labels {
        let text = decode(content.as_ref(), &labels)?;
        let read = each_of(text, &labels, places.len(), &format!("node of {indicator}"), |line| {
            // Some sets have further attributes behind a comma.
            let label = line.split(',').next().unwrap_or(line).trimmed();
            label.number(u32::MAX, "the label of a node, a number from 0")
        })?;
        for (&[graph, node], label) in places.iter().zip(read) {
            graphs[graph as usize].labels[node as usize] = label;
        }
    }
    if let Some(content) = &contents.classes {
        let text = decode(content.as_ref(), &classes)?;
        let read = each_of(text, &classes, graphs.len(), &format!("graph of {indicator}"), |line| {
            let line = line.trimmed();
            line.text.parse::<i32>().map_err(|_| line.error("the class of a graph, a whole number"))
        })?;
        graphs.iter_mut().zip(read).for_each(|(graph, class)| graph.class = class);
    }
    Ok(graphs)
}

/// Reads one item per line, for as many lines as there are nodes or graphs.
fn each_of<'a, T>(
    text: &'a str,
    file: &'a str,
    count: usize,
    owner: &str,
    read: impl Fn(Piece<'a>) -> Result<T, DataError>,
) -> Result<Vec<T>, DataError> {
    let found = lines(text, file).map(read).collect::<Result<Vec<T>, DataError>>()?;
    if found.len() != count {
        let expected = format!("{count} lines, one per {owner}");
        return Err(DataError::in_file(file, expected, format!("{} lines", found.len())));
    }
    Ok(found)
}

/// Reads the data set in a folder.
///
/// # Errors
/// The folder has no data set or several, a file cannot be read, or [`parse`] fails.
pub fn read(folder: impl AsRef<Path>) -> Result<Vec<LabelledGraph>, DataError> {
    read_set(folder.as_ref(), true)
}

/// Reads the data set in a folder that may lack the classes.
///
/// # Errors
/// As [`read`].
pub fn read_inputs(folder: impl AsRef<Path>) -> Result<Vec<LabelledGraph>, DataError> {
    read_set(folder.as_ref(), false)
}

fn read_set(folder: &Path, needs_classes: bool) -> Result<Vec<LabelledGraph>, DataError> {
    let shown = folder.display().to_string();
    let unreadable =
        |error: std::io::Error| DataError::in_file(&shown, "a readable folder", error.to_string());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        names.extend(name.to_string_lossy().strip_suffix(ENDINGS[1]).map(str::to_owned));
    }
    names.sort();
    let [name] = &names[..] else {
        let found = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(DataError::in_file(
            &shown,
            format!("the files of one data set, NAME{}", ENDINGS[1]),
            found,
        ));
    };
    let content = |number: usize| {
        let path = folder.join(format!("{name}{}", ENDINGS[number]));
        read_with(&path, |bytes, _| Ok(bytes.to_vec()))
    };
    let optional = |number: usize| match folder.join(format!("{name}{}", ENDINGS[number])).exists() {
        true => content(number).map(Some),
        false => Ok(None),
    };
    let classes = if needs_classes { Some(content(2)?) } else { optional(2)? };
    let contents = Contents { edges: content(0)?, indicator: content(1)?, classes, labels: optional(3)? };
    parse(&contents, &folder.join(name).display().to_string())
}

/// Returns the contents of the files of a data set with these graphs.
pub fn write(graphs: &[LabelledGraph]) -> Contents<String> {
    let mut contents = Contents::<String>::default();
    let (mut classes, mut labels) = (String::new(), String::new());
    let mut before = 1;
    for (number, graph) in (1..).zip(graphs) {
        let line = |content: &mut String, text: String| content.extend([text.as_str(), "\n"]);
        for &[from, to] in &graph.edges {
            line(&mut contents.edges, format!("{}, {}", before + from, before + to));
        }
        for label in &graph.labels {
            line(&mut contents.indicator, format!("{number}"));
            line(&mut labels, format!("{label}"));
        }
        line(&mut classes, format!("{}", graph.class));
        before += graph.labels.len() as u32;
    }
    Contents { classes: Some(classes), labels: Some(labels), ..contents }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mutation::survives;

    fn sample() -> Contents<&'static str> {
        Contents {
            edges: "1, 2\n2,1\n4, 3\n",
            indicator: "1\n1\n2\n2\n",
            classes: Some("1\n-1\n"),
            labels: Some("0\n7\n3\n0, 5\n"),
        }
    }

    #[test]
    fn graphs_read_back_equal_after_writing() {
        let graphs = parse(&sample(), "f").unwrap();
        assert_eq!(graphs.len(), 2);
        assert_eq!(graphs[0], LabelledGraph { labels: vec![0, 7], edges: vec![[0, 1], [1, 0]], class: 1 });
        assert_eq!((graphs[1].class, graphs[1].neighbours()), (-1, vec![vec![], vec![0]]));
        assert_eq!(parse(&write(&graphs), "f").unwrap(), graphs);
        let bare = Contents { classes: None, labels: None, ..sample() };
        let bare = parse(&bare, "f").unwrap();
        assert_eq!((bare[1].labels.clone(), bare[1].class), (vec![0, 0], 0));
    }

    #[test]
    fn contradictions_are_errors_with_a_place() {
        let say = |contents: Contents<&str>| parse(&contents, "d/X").unwrap_err().to_string();
        let errors = [
            say(Contents { indicator: "1\n3\n", ..sample() }),
            say(Contents { indicator: "2\n", ..sample() }),
            say(Contents { indicator: "0\n", ..sample() }),
            say(Contents { edges: "1 2\n", ..sample() }),
            say(Contents { edges: "1, 5\n", ..sample() }),
            say(Contents { edges: "0, 1\n", ..sample() }),
            say(Contents { edges: "2, 3\n", ..sample() }),
            say(Contents { classes: Some("1\n"), ..sample() }),
            say(Contents { classes: Some("1\nx\n"), ..sample() }),
            say(Contents { labels: Some("1\n2\n3\n-4\n"), ..sample() }),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r#"
        d/X_graph_indicator.txt:2:1: expected graph 1 or 2, because the numbers of graphs ascend, found 3
        d/X_graph_indicator.txt:1:1: expected graph 1, because the numbers of graphs ascend from 1, found 2
        d/X_graph_indicator.txt:1:1: expected graph 1, because the numbers of graphs ascend from 1, found 0
        d/X_A.txt:1:1: expected two nodes, such as `1, 2`, found 1 columns
        d/X_A.txt:1:4: expected a node 1..4, one per line of d/X_graph_indicator.txt, found 5
        d/X_A.txt:1:1: expected a node 1..4, one per line of d/X_graph_indicator.txt, found 0
        d/X_A.txt:1:1: expected two nodes of one graph, found nodes of graphs 1 and 2
        d/X_graph_labels.txt: expected 2 lines, one per graph of d/X_graph_indicator.txt, found 1 lines
        d/X_graph_labels.txt:2:1: expected the class of a graph, a whole number, found "x"
        d/X_node_labels.txt:4:1: expected the label of a node, a number from 0, found "-4"
        "#);
    }

    #[test]
    fn a_folder_without_a_data_set_is_an_error_that_names_it() {
        let error = read("no/such/folder").unwrap_err().to_string();
        assert!(error.starts_with("no/such/folder: expected a readable folder, found "), "{error}");
        let error = read("src").unwrap_err().to_string();
        assert_eq!(error, "src: expected the files of one data set, NAME_graph_indicator.txt, found none");
    }

    #[test]
    fn damaged_content_never_panics() {
        let whole = sample();
        survives(whole.edges.as_bytes(), |edges| {
            let rest = whole.clone();
            let bytes = |text: &'static str| text.as_bytes();
            let contents = Contents {
                edges,
                indicator: bytes(rest.indicator),
                classes: rest.classes.map(bytes),
                labels: rest.labels.map(bytes),
            };
            drop(parse(&contents, "f"));
        });
        survives(whole.indicator.as_bytes(), |indicator| {
            drop(parse(&Contents { edges: &b"1, 2\n"[..], indicator, classes: None, labels: None }, "f"));
        });
    }
}
