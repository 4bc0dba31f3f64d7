//! `diff`: compares two plans or two graphs.

mod graphs;
mod plans;

use crate::args::DiffArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Loaded, load, one_standard_input};
use autobatch_inspector::text::{count, table};
use serde::Serialize;
use serde_json::json;
use std::io::Write;

/// A property in which two files differ, with its value in each.
#[derive(Debug, Serialize)]
struct Difference {
    property: String,
    a: Content,
    b: Content,
}

/// The value of a property in one file.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Content {
    Number(u64),
    Text(String),
}

/// Maximum length of values in the table; longer ones follow below it.
const MAX_TABLE_TEXT: usize = 32;

impl Content {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => count(*number),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Difference {
    fn is_short(&self) -> bool {
        [&self.a, &self.b].into_iter().all(|content| content.text().chars().count() <= MAX_TABLE_TEXT)
    }

    /// The row of the table; numbers have their change as the last cell.
    fn row(&self) -> Vec<String> {
        let mut row = vec![self.property.clone(), self.a.text(), self.b.text()];
        if let (Content::Number(a), Content::Number(b)) = (&self.a, &self.b) {
            row.push(change(*a, *b));
        }
        row
    }
}

/// `+1,200 (+64 %)`
fn change(a: u64, b: u64) -> String {
    let sign = if b < a { '-' } else { '+' };
    let share = a.abs_diff(b) as f64 * 100.0 / a as f64;
    match (a, b) {
        _ if a == b => String::new(),
        (0, _) => "added".to_owned(),
        (_, 0) => "removed".to_owned(),
        _ if share < 0.5 => format!("{sign}{} (under 1 %)", count(a.abs_diff(b))),
        _ => format!("{sign}{} ({sign}{share:.0} %)", count(a.abs_diff(b))),
    }
}

/// Compares two files.
pub fn diff(args: &DiffArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    console.ignore_closed_pipe();
    one_standard_input([&args.a, &args.b])?;
    let differences = match (load(&args.a)?, load(&args.b)?) {
        (Loaded::Plan(a), Loaded::Plan(b)) => plans::differences(&a.into_inner(), &b.into_inner()),
        (Loaded::Graph(a), Loaded::Graph(b)) => graphs::differences(&a, &b),
        (a, _) => {
            let [graph, plan] = match a {
                Loaded::Graph(_) => [&args.a, &args.b],
                Loaded::Plan(_) => [&args.b, &args.a],
            };
            let message = format!("{graph} is a graph, but {plan} is a plan");
            return Err(Failure::usage(message).help(
                "compare two graphs or two plans; autobatch check GRAPH PLAN checks a plan against its graph",
            ));
        }
    };
    let same = differences.is_empty();
    if args.json {
        let answer = json!({"a": args.a, "b": args.b, "same": same, "differences": differences});
        writeln!(console, "{answer:#}")?;
    } else if same {
        writeln!(console, "{} and {} are equal", args.a, args.b)?;
    } else {
        writeln!(console, "a  {}\nb  {}\n", args.a, args.b)?;
        let head = ["", "a", "b", "from a to b"].map(str::to_owned).to_vec();
        let (short, long): (Vec<&Difference>, Vec<&Difference>) =
            differences.iter().partition(|difference| difference.is_short());
        if !short.is_empty() {
            let rows = short.into_iter().map(Difference::row);
            let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
            console.write_all(table(&all, &[0, 3]).as_bytes())?;
        }
        for Difference { property, a, b } in long {
            writeln!(console, "{property}\n  a  {}\n  b  {}", a.text(), b.text())?;
        }
    }
    Ok(if same { Answer::Yes } else { Answer::No })
}

/// The difference of two numbers, if there is one.
fn numbers(property: impl Into<String>, a: u64, b: u64) -> Option<Difference> {
    (a != b).then(|| Difference { property: property.into(), a: Content::Number(a), b: Content::Number(b) })
}

/// The difference of two texts, if there is one.
fn texts(property: impl Into<String>, a: impl Into<String>, b: impl Into<String>) -> Option<Difference> {
    let (a, b) = (a.into(), b.into());
    (a != b).then(|| Difference { property: property.into(), a: Content::Text(a), b: Content::Text(b) })
}

/// The first difference of two sequences. A dash stands for the end of a sequence.
fn first_difference<T: PartialEq>(
    property: impl Into<String>,
    a: &[T],
    b: &[T],
    text: impl Fn(&T) -> String,
) -> Option<Difference> {
    let at = (0..a.len().max(b.len())).find(|&at| a.get(at) != b.get(at))?;
    let content = |side: &[T]| Content::Text(side.get(at).map_or_else(|| "-".to_owned(), &text));
    Some(Difference { property: property.into(), a: content(a), b: content(b) })
}
