//! Playing while another thread prepares what is played next.

use super::{Planning, Session, bound};
use crate::error::Result;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

impl Session {
    /// Plays a plan of a graph while another thread plans; gives how long playing took, and what the
    /// other thread made. If there is a plan in that when it is done in time, a GPU makes ready for it.
    pub(crate) fn play_while<T: Send>(
        &mut self,
        plan: &Arc<Verified<Plan>>,
        graph: &GraphData,
        noise: Noise,
        meanwhile: impl FnOnce(&mut Planning) -> T + Send,
        next: impl Fn(&T) -> Option<Arc<Verified<Plan>>>,
    ) -> (Result<Duration>, T) {
        let start = Instant::now();
        let Self { planning, player, mirror, .. } = self;
        let (played, playing, made) = std::thread::scope(|scope| {
            let (mut other, mut made) = (Some(scope.spawn(|| meanwhile(planning))), None);
            let weights = &mirror.here().weights;
            let played = player.play_and_prepare(plan, weights, bound(graph, noise), || {
                match other.take_if(|other| other.is_finished()) {
                    Some(done) => made = Some(done.join()),
                    None => return Poll::Pending,
                }
                Poll::Ready(made.as_ref().and_then(|made| made.as_ref().ok()).and_then(&next))
            });
            let playing = start.elapsed();
            let made = other.map_or(made, |other| Some(other.join()));
            (played, playing, made.expect("it was joined while or after playing"))
        });
        let made = made.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let played = self.noticed(played).map(|()| {
            self.last = Some(Arc::clone(plan));
            playing
        });
        (played, made)
    }
}
