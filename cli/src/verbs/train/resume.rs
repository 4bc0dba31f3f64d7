//! The command that continues a run, and the options that changed since its checkpoint.

use crate::args::{ModelArgs, TrainArgs};
use crate::shell::quoted;
use autobatch::Trainer;
use clap::ValueEnum;
use std::collections::BTreeMap;

/// The options that shape the updates, as text. Checkpoints store them in a note.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings(BTreeMap<String, String>);

impl Settings {
    const NOTE: &'static str = "settings";

    pub(super) fn new(
        args: &TrainArgs,
        rate: f64,
        batch: usize,
        instances: usize,
        shards: Option<usize>,
    ) -> Self {
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        let settings = [
            ("--lr", rate.to_string()),
            ("--optimizer", optimizer_name(args)),
            ("--clip", args.clip.to_string()),
            ("--decay", args.decay.to_string()),
            ("--patience", args.patience.to_string()),
            ("--batch", batch.to_string()),
            ("--bucket", switch(args.bucket)),
            ("--policy", args.model.policy().to_string()),
            ("--data", args.model.data.clone().unwrap_or_else(|| "generated".to_owned())),
            ("--count", instances.to_string()),
            ("--shards", shards.map_or_else(|| "none".to_owned(), |shards| shards.to_string())),
        ];
        Self(settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Stores the settings for the next checkpoint.
    pub(super) fn note(&self, trainer: &mut Trainer) {
        trainer.set_note(Self::NOTE, serde_json::json!(self.0).to_string());
    }

    /// `--lr 0.01, before 0.004`: the settings that differ from those in the checkpoint.
    pub(super) fn changes_since(&self, trainer: &Trainer) -> Vec<String> {
        let noted: BTreeMap<String, String> =
            trainer.note(Self::NOTE).and_then(|note| serde_json::from_str(note).ok()).unwrap_or_default();
        let changed = self.0.iter().filter_map(|(name, value)| {
            let before = noted.get(name).filter(|&before| before != value)?;
            Some(format!("{name} {value}, before {before}"))
        });
        changed.collect()
    }
}

fn optimizer_name(args: &TrainArgs) -> String {
    args.optimizer.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The command that continues the run from a checkpoint with equal options.
pub(super) fn command(args: &TrainArgs, checkpoint: &str) -> String {
    let TrainArgs {
        model: ModelArgs { name, data, hidden, embedding, seed, device, policy },
        count,
        batch,
        threads,
        epochs,
        max_minutes,
        lr,
        optimizer: _,
        clip,
        decay,
        patience,
        bucket,
        curve,
        save,
        save_every,
        resume: _,
        shards,
        divide_states,
        // This run writes its trace; the next would replace it.
        trace: _,
        decode,
        json,
    } = args;
    let mut words = vec!["autobatch".to_owned(), "train".to_owned(), name.clone()];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_owned(), quoted(&value)]);
        }
    };
    let unless = |value: String, usual: &str| Some(value).filter(|value| value != usual);
    option("--data", data.clone());
    option("--count", count.map(|count| count.to_string()));
    option("--hidden", hidden.map(|width| width.to_string()));
    option("--embedding", embedding.map(|width| width.to_string()));
    option("--seed", unless(seed.to_string(), "1"));
    option("--device", unless(device.to_string(), "cpu"));
    option("--policy", policy.as_ref().map(ToString::to_string));
    option("--batch", batch.map(|batch| batch.to_string()));
    option("--threads", unless(threads.to_string(), "0"));
    option("--epochs", epochs.map(|epochs| epochs.to_string()));
    option("--max-minutes", max_minutes.map(|minutes| minutes.to_string()));
    option("--lr", lr.map(|rate| rate.to_string()));
    option("--optimizer", unless(optimizer_name(args), "adam"));
    option("--clip", unless(clip.to_string(), "5"));
    option("--decay", unless(decay.to_string(), "0"));
    option("--patience", unless(patience.to_string(), "0"));
    curve.iter().for_each(|path| option("--curve", Some(path.clone())));
    option("--shards", shards.map(|shards| shards.to_string()));
    option("--save", save.clone());
    option("--save-every", save_every.map(|minutes| minutes.to_string()));
    option("--resume", Some(checkpoint.to_owned()));
    let switches = [
        ("--bucket", *bucket),
        ("--divide-states", *divide_states),
        ("--decode", *decode),
        ("--json", *json),
    ];
    words.extend(switches.into_iter().filter(|(_, on)| *on).map(|(name, _)| name.to_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Verb;
    use clap::Parser;

    fn train(words: &str) -> TrainArgs {
        let cli = crate::Cli::try_parse_from(words.split(' ')).expect("the command line is valid");
        match cli.verb {
            Verb::Train(args) => args,
            other => panic!("expected train, found {other:?}"),
        }
    }

    #[test]
    fn the_command_repeats_the_options() {
        for (given, expected) in [
            ("autobatch train names", "autobatch train names --resume x.safetensors"),
            (
                "autobatch train names --lr 0.01 --bucket --curve a.svg --curve b.csv --save y.safetensors --seed 7",
                "autobatch train names --seed 7 --lr 0.01 --curve a.svg --curve b.csv --save y.safetensors --resume x.safetensors --bucket",
            ),
            (
                "autobatch train tagger --resume old --optimizer adamw --clip 1",
                "autobatch train tagger --optimizer adamw --clip 1 --resume x.safetensors",
            ),
        ] {
            let found = command(&train(given), "x.safetensors");
            assert_eq!(found, expected);
            assert_eq!(command(&train(&found), "x.safetensors"), found, "the command parses");
        }
    }
}
