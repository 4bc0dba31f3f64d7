//! The output of `train`, as text or as one JSON object per line.

use super::best::Tested;
use super::curve::Epoch;
use super::{End, Run, resume};
use crate::console::Console;
use crate::failure::Failure;
use autobatch::train::Progress;
use autobatch_inspector::text::{count, plural};
use autobatch_models::lessons::CorpusPart;
use serde_json::{Value as Json, json};
use std::io::Write;

impl Run<'_> {
    /// Prints lines of text, or a JSON object, and flushes, so that logs show them at once.
    fn say(&self, console: &mut Console<'_>, text: &str, json: &Json) -> Result<(), Failure> {
        match self.args.json {
            true => writeln!(console, "{json}")?,
            false => console.write_all(text.as_bytes())?,
        }
        Ok(console.flush()?)
    }

    pub(super) fn print_header(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        let Self { lesson, args, trainer, batch, epochs, rate, .. } = self;
        let parameters: usize = trainer.weights().iter().map(|param| param.values().len()).sum();
        let [train, development, test] = CorpusPart::ALL.map(|part| lesson.part(part).len());
        let (name, about, unit) = (lesson.entry.name, lesson.entry.about, lesson.entry.unit);
        let mut text = format!(
            "{name}  {about}, {} parameters; {} {unit} for training, {} for development, {} for the test ({})\n",
            count(parameters as u64),
            count(train as u64),
            count(development as u64),
            count(test as u64),
            lesson.source,
        );
        text += &format!(
            "{:?}, learning rate {rate}, minibatches of {batch}, seed {}, up to {}, on {}\n",
            args.optimizer,
            args.model.seed,
            plural(*epochs, "epoch"),
            args.model.device,
        );
        let at = trainer.progress();
        if let Some(path) = &args.resume {
            text += &self.resumed(path, at);
        }
        let resumed = args.resume.as_ref().map(|path| {
            json!({ "from": path, "epochs": at.epoch, "minibatches": at.batches, "changes": self.changes })
        });
        let json = json!({
            "event": "start", "model": name, "about": about, "parameters": parameters, "train": train,
            "development": development, "test": test, "source": lesson.source,
            "optimizer": format!("{:?}", args.optimizer), "learning_rate": rate, "batch": batch,
            "seed": args.model.seed, "epochs": epochs, "device": args.model.device.to_string(), "resumed": resumed,
        });
        self.say(console, &text, &json)
    }

    /// The lines about a resumption.
    fn resumed(&self, path: &str, at: Progress) -> String {
        if at.epoch >= self.epochs {
            let made = plural(at.epoch, "epoch");
            return format!(
                "resumed from {path} after {made}: training is complete (--epochs raises the total)\n"
            );
        }
        let mut text =
            format!("resumed from {path}: epoch {}, after {} of its minibatches\n", at.epoch + 1, at.batches);
        if !self.changes.is_empty() {
            text += &format!("changed     {}\n", self.changes.join("; "));
        }
        text
    }

    pub(super) fn print_epoch(&self, epoch: &Epoch, console: &mut Console<'_>) -> Result<(), Failure> {
        let mut json = epoch.json();
        json["event"] = json!("epoch");
        let text = format!("{}\n", epoch.line(console));
        self.say(console, &text, &json)
    }

    pub(super) fn print_patience(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        let patience = self.args.patience as u64;
        let text = format!("no improvement for {}\n", plural(patience, "epoch"));
        self.say(console, &text, &json!({ "event": "stop", "epochs_without_improvement": patience }))
    }

    pub(super) fn print_end(
        &self,
        end: End,
        unfinished: Option<&str>,
        tested: Option<&Tested>,
        console: &mut Console<'_>,
    ) -> Result<(), Failure> {
        let command = unfinished.map(|path| resume::command(self.args, path));
        let mut text = self.unfinished(end, command.as_deref());
        let best = self.patience.best().map(|(number, _)| number as u64 + 1);
        if let Some(epoch) = best.and_then(|number| self.curve.epoch(number)) {
            text +=
                &format!("best        epoch {}: development loss {}\n", epoch.number, epoch.measured.text());
        }
        if let Some(tested) = tested {
            text += &tested_text(tested);
        }
        let drawn = self.args.curve.iter().filter(|_| self.wrote_epoch);
        let written: Vec<&String> = drawn.chain(&self.written).collect();
        for path in &written {
            text += &format!("wrote       {path}\n");
        }
        text += &format!("took        {}\n", console.time(self.start.elapsed()));
        if let (End::Complete, Some(path)) = (end, self.written.last()) {
            let data =
                self.args.model.data.as_ref().map_or_else(String::new, |data| format!(" --data {data}"));
            let name = self.lesson.entry.name;
            text += &format!(
                "Next: autobatch predict {name} --weights {path} FILE   |   autobatch eval {name} --weights {path}{data}\n"
            );
        }
        let tested = tested.map(|Tested { epoch, instances, measured, heads }| {
            json!({
                "epoch": epoch, "instances": instances, "loss": measured.loss, "scores": measured.scores(),
                "correct_heads": heads,
            })
        });
        let json = json!({
            "event": "end", "reason": format!("{end:?}").to_lowercase(), "best_epoch": best, "tested": tested,
            "written": written, "continue": command, "seconds": console.millis(self.start.elapsed()).map(|ms| ms / 1e3),
        });
        self.say(console, &text, &json)
    }

    /// The lines about a run that ended within an epoch.
    fn unfinished(&self, end: End, command: Option<&str>) -> String {
        let Progress { epoch, batches } = self.trainer.progress();
        let reason = match end {
            End::Complete => return String::new(),
            End::OutOfTime => "time ran out",
            End::Interrupted => "interrupted",
        };
        let mut text = format!("{reason} in epoch {}, after {batches} of its minibatches\n", epoch + 1);
        if let Some(command) = command {
            text += &format!("continue    {command}\n");
        }
        text
    }
}

fn tested_text(tested: &Tested) -> String {
    let Tested { epoch, instances, measured, heads } = tested;
    let weights = match epoch {
        Some(epoch) => format!("epoch {epoch}"),
        None => "the last parameters".to_owned(),
    };
    let mut text =
        format!("test        {weights}, {} instances: loss {}\n", count(*instances as u64), measured.text());
    if let Some(heads) = heads {
        text += &format!("decoded     greedily: {:.2} % of the words have the correct head\n", 100.0 * heads);
    }
    text
}
