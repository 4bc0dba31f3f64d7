//! Reads the fenced blocks of a page.

/// A fenced block: its kind, the lines between the fences, and the number of its first line, from 0.
pub(crate) struct Block<'a> {
    pub(crate) kind: &'a str,
    pub(crate) lines: Vec<&'a str>,
    pub(crate) start: usize,
}

/// A command of a `console` block with its expected output. Both ranges are numbers of lines of the page.
pub(crate) struct Step<'a> {
    pub(crate) command: &'a str,
    pub(crate) expected: Vec<&'a str>,
    pub(crate) output: std::ops::Range<usize>,
}

/// The fenced blocks of a page, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut open = false;
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(kind), false) => {
                found.push(Block { kind, lines: Vec::new(), start: number + 1 });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => found.last_mut().expect("an open block exists").lines.push(line),
            (None, false) => {}
        }
    }
    assert!(!open, "the last block is not closed");
    found
}

/// The commands of the `console` blocks of a page, in order.
pub(crate) fn steps(page: &str) -> Vec<Step<'_>> {
    let mut found: Vec<Step<'_>> = Vec::new();
    for block in blocks(page).into_iter().filter(|block| block.kind == "console") {
        for (at, line) in block.lines.iter().enumerate() {
            let number = block.start + at;
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => {
                    found.push(Step { command, expected: Vec::new(), output: number + 1..number + 1 });
                }
                (None, Some(step)) => {
                    step.expected.push(line);
                    step.output.end = number + 1;
                }
                (None, None) => panic!("line {}: a console block begins with a command", number + 1),
            }
        }
    }
    found
}
