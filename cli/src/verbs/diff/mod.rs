//! `diff`: what differs between two plans, or between two graphs.

mod graphs;
mod plans;

use crate::args::DiffArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Loaded, load, one_standard_input};
use crate::words::{count, table};
use serde::Serialize;
use serde_json::json;
use std::io::Write;

/// A thing in which two files differ, and what it is in either.
#[derive(Debug, Serialize)]
struct Difference {
    what: String,
    a: Said,
    b: Said,
}

/// What one of two files says of a thing.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Said {
    Number(u64),
    Words(String),
}

/// How long words may be that stand in the table.
const SHORT: usize = 32;

impl Said {
    fn words(&self) -> String {
        match self {
            Self::Number(number) => count(*number),
            Self::Words(words) => words.clone(),
        }
    }
}

impl Difference {
    fn is_short(&self) -> bool {
        [&self.a, &self.b].into_iter().all(|said| said.words().chars().count() <= SHORT)
    }

    /// The line of the table: numbers with their change.
    fn row(&self) -> Vec<String> {
        let mut row = vec![self.what.clone(), self.a.words(), self.b.words()];
        if let (Said::Number(a), Said::Number(b)) = (&self.a, &self.b) {
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
        (0, _) => "new".to_owned(),
        (_, 0) => "gone".to_owned(),
        _ if share < 0.5 => format!("{sign}{} (under 1 %)", count(a.abs_diff(b))),
        _ => format!("{sign}{} ({sign}{share:.0} %)", count(a.abs_diff(b))),
    }
}

/// Compares two files.
pub fn diff(args: &DiffArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    console.work_on();
    one_standard_input([&args.a, &args.b])?;
    let differences = match (load(&args.a)?, load(&args.b)?) {
        (Loaded::Plan(a), Loaded::Plan(b)) => plans::differences(&a.into_inner(), &b.into_inner()),
        (Loaded::Graph(a), Loaded::Graph(b)) => graphs::differences(&a, &b),
        (a, _) => {
            let [graph, plan] = match a {
                Loaded::Graph(_) => [&args.a, &args.b],
                Loaded::Plan(_) => [&args.b, &args.a],
            };
            let message = format!("{graph} is a graph and {plan} a plan");
            return Err(Failure::usage(message)
                .help("diff two of a kind; autobatch check GRAPH PLAN compares the two"));
        }
    };
    let same = differences.is_empty();
    if args.json {
        let answer = json!({"a": args.a, "b": args.b, "same": same, "differences": differences});
        writeln!(console, "{answer:#}")?;
    } else if same {
        writeln!(console, "{} and {} say the same", args.a, args.b)?;
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
        for Difference { what, a, b } in long {
            writeln!(console, "{what}\n  a  {}\n  b  {}", a.words(), b.words())?;
        }
    }
    Ok(if same { Answer::Yes } else { Answer::No })
}

/// A number of each file, if the two differ.
fn numbers(what: impl Into<String>, a: u64, b: u64) -> Option<Difference> {
    (a != b).then(|| Difference { what: what.into(), a: Said::Number(a), b: Said::Number(b) })
}

/// Words of each file, if the two differ.
fn words(what: impl Into<String>, a: impl Into<String>, b: impl Into<String>) -> Option<Difference> {
    let (a, b) = (a.into(), b.into());
    (a != b).then(|| Difference { what: what.into(), a: Said::Words(a), b: Said::Words(b) })
}

/// The first place in which two sequences differ, in words; where one has ended, a dash stands.
fn first<T: PartialEq>(
    what: impl Into<String>,
    a: &[T],
    b: &[T],
    spell: impl Fn(usize, &T) -> String,
) -> Option<Difference> {
    let place = (0..a.len().max(b.len())).find(|&place| a.get(place) != b.get(place))?;
    let said = |side: &[T]| side.get(place).map_or_else(|| "-".to_owned(), |it| spell(place, it));
    Some(Difference { what: what.into(), a: Said::Words(said(a)), b: Said::Words(said(b)) })
}
