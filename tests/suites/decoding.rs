//! Greedy, drawn and beam search over transformer states and recurrent states, together and alone.

use autobatch::decode::{Decoded, Draw, Search};
use autobatch::nn::{Linear, Lstm, State, TransformerEncoder, TransformerState};
use autobatch::prelude::*;
use std::future::Future;
use std::pin::Pin;

const WORDS: u32 = 9;
const END: u32 = 8;
const LONGEST: usize = 12;

type Found<'f> = Pin<Box<dyn Future<Output = autobatch::Result<Vec<Decoded>>> + 'f>>;

struct Writer {
    words: Table,
    lstm: Lstm,
    encoder: TransformerEncoder,
    next: Linear,
}

impl Writer {
    fn new(m: &mut ModuleBuilder) -> Self {
        Writer {
            words: m.table("words", [WORDS as usize, 8], Init::Uniform(2.0)),
            lstm: Lstm::new(m, "lstm", 8, 8),
            encoder: TransformerEncoder::new(m, "encoder", 8, 2, 2),
            next: Linear::with_options(m, "next", 8, WORDS as usize, Init::Uniform(1.5), None),
        }
    }

    fn attended<'g>(
        &self,
        g: &'g Graph,
        mut state: TransformerState<'g>,
        word: u32,
    ) -> (TransformerState<'g>, Value<'g>) {
        let y = state.push(self.words.lookup(g, word));
        (state, y)
    }

    /// The search number `kind`: three ways, each over both kinds of states.
    fn search<'f>(&'f self, g: &'f Graph, kind: usize, first: u32) -> Found<'f> {
        let way = kind % 3;
        let search = Search::new(END, LONGEST).width(if way == 1 { 3 } else { 1 });
        let draw = Draw::new(END, LONGEST).temperature(1.5);
        if kind < 3 {
            let start = self.attended(g, self.encoder.start(g), first);
            let scores = |state: &(TransformerState<'f>, Value<'f>)| self.next.on(state.1);
            let push =
                |state: &(TransformerState<'f>, Value<'f>), word| self.attended(g, state.0.clone(), word);
            return match way {
                2 => Box::pin(async move { Ok(vec![draw.run(g, start, first.into(), scores, push).await?]) }),
                _ => Box::pin(async move { search.run(g, start, scores, push).await }),
            };
        }
        let start = self.lstm.start(g).push(self.words.lookup(g, first));
        let scores = |state: &State<'f, _, 2>| self.next.on(state.h());
        let push = |state: &State<'f, _, 2>, word| state.push(self.words.lookup(g, word));
        match way {
            2 => Box::pin(async move { Ok(vec![draw.run(g, start, first.into(), scores, push).await?]) }),
            _ => Box::pin(async move { search.run(g, start, scores, push).await }),
        }
    }
}

#[test]
fn searches_of_all_kinds_run_together_as_they_run_alone() {
    let mut m = ModuleBuilder::new("writer");
    let writer = Writer::new(&mut m);
    let mut session = Session::new(m.build().unwrap(), Device::Cpu).unwrap();
    let tasks: Vec<(usize, u32)> =
        (0..6).flat_map(|kind| (0..WORDS).map(move |first| (kind, first))).collect();
    let together = {
        let g = &session.graph();
        session.tasks(g, tasks.iter().map(|&(kind, first)| writer.search(g, kind, first))).unwrap()
    };
    let lengths: Vec<usize> = together.iter().map(|found| found[0].symbols.len()).collect();
    assert!(
        lengths.iter().any(|length| *length != lengths[0]),
        "the sentences must differ in length: {lengths:?}"
    );
    for (&(kind, first), found) in tasks.iter().zip(&together) {
        let g = &session.graph();
        let alone = session.tasks(g, [writer.search(g, kind, first)]).unwrap();
        assert_eq!(alone[0], *found, "kind {kind}, first word {first}");
        assert!(found.len() == 1 || found.windows(2).all(|pair| pair[0].score >= pair[1].score));
        assert!(
            found
                .iter()
                .all(|one| one.symbols.len() <= LONGEST && one.ended == (one.symbols.len() < LONGEST))
        );
    }
}
