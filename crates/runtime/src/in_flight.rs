//! Requests of a run that were started and have no answer yet.
//!
//! Entry point: [`InFlight`]. A request that is the only one, as that of an agent that waits for its model
//! mostly is, is polled in the task of the run itself: a task of its own takes half a KiB, and there may be a
//! hundred thousand of them. As soon as there is another, each has a task.
//!
//! Invariant: a canceled request is dropped, which closes its sockets and kills its processes. A handler of
//! the embedding program that blocks its thread is dropped when it returns; nothing waits for it if it has a
//! task.
//! Invariant: a handler that panics ends its own request and nothing else.

use crate::approve::Verdict;
use crate::budget::Reserve;
use crate::inline_map::InlineMap;
use crate::provider::{Answer, BoxFuture, Provider, Tokens};
use crate::tools::ToolAnswer;
use core_ir::Data;
use machine::{Messages, RequestId};
use runs::RedactedStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// Result of a request.
pub(crate) enum Completion {
    Model(Box<Answer>),
    Tool(Box<ToolAnswer>),
    /// It was not called, because the journal can't be written.
    NotNoted(String),
    Approval(Verdict),
    Recall(Result<Option<Data>, String>),
    Remember(Result<(), String>),
}

/// Request in flight.
pub(crate) struct OpenRequest {
    pub(crate) begun: Instant,
    pub(crate) what: RequestKind,
    /// A reply that is told while it grows.
    pub(crate) text: Option<Box<RedactedStream>>,
    /// None while it is polled in the task of the run.
    task: Option<AbortHandle>,
}

/// Kind of a request in flight, with its data.
pub(crate) enum RequestKind {
    Model(OpenModel),
    Tool,
    Approval,
    Recall,
    Remember,
}

/// Data of a model call in flight.
pub(crate) struct OpenModel {
    pub(crate) reserve: Reserve,
    pub(crate) provider: Arc<dyn Provider>,
    /// The conversation.
    pub(crate) asked: Messages,
    /// Known tokens used if the call is canceled.
    pub(crate) spent: Tokens,
}

/// Work that may be polled anywhere.
pub(crate) enum Portable {
    Model(BoxFuture<Answer>),
    Tool(BoxFuture<ToolAnswer>),
}

impl Future for Portable {
    type Output = Completion;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Completion> {
        match self.get_mut() {
            Portable::Model(work) => work.as_mut().poll(cx).map(|a| Completion::Model(Box::new(a))),
            Portable::Tool(work) => work.as_mut().poll(cx).map(|a| Completion::Tool(Box::new(a))),
        }
    }
}

/// Requests in flight.
#[derive(Default)]
pub(crate) struct InFlight {
    open: InlineMap<Box<OpenRequest>>,
    /// The work of the only one. There are no tasks then.
    alone: Option<Portable>,
    tasks: Option<JoinSet<(RequestId, Completion)>>,
}

impl InFlight {
    /// Returns the number of requests in flight; canceled ones that have not ended yet count.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.alone.is_some()) + self.tasks.as_ref().map_or(0, JoinSet::len)
    }

    /// One that is not answered yet.
    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut OpenRequest> {
        self.open.get_mut(id).map(|open| &mut **open)
    }

    /// Returns the model calls in flight.
    pub(crate) fn models(&self) -> impl Iterator<Item = &OpenModel> {
        self.open.iter().filter_map(|(_, open)| match &open.what {
            RequestKind::Model(model) => Some(model),
            _ => None,
        })
    }

    /// Begins with a request.
    pub(crate) fn begin(&mut self, id: RequestId, begun: Instant, what: RequestKind, work: Portable) {
        if self.len() > 0 {
            return self.spawn(id, begun, what, work);
        }
        self.alone = Some(work);
        self.open.insert(id, Box::new(OpenRequest { begun, what, text: None, task: None }));
    }

    /// Begins with a request, in a task of its own.
    pub(crate) fn spawn(
        &mut self,
        id: RequestId,
        begun: Instant,
        what: RequestKind,
        work: impl Future<Output = Completion> + Send + 'static,
    ) {
        if let Some(alone) = self.alone.take()
            && let Some((first, open)) = self.open.first_mut()
        {
            open.task = Some(in_task(&mut self.tasks, first, alone));
        }
        let task = Some(in_task(&mut self.tasks, id, work));
        self.open.insert(id, Box::new(OpenRequest { begun, what, text: None, task }));
    }

    /// Polls for the next completed request and its result, which is absent if its handler panicked. Returns
    /// `None` for the request if it was canceled before.
    pub(crate) fn poll_done(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(RequestId, Option<Completion>)>> {
        if let Some(work) = &mut self.alone {
            // A future broken by a panic is dropped below.
            let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(work).poll(cx)));
            let done = match polled {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(done)) => Some(done),
                Err(_) => None,
            };
            self.drop_alone();
            return Poll::Ready(self.open.first_mut().map(|(id, _)| (id, done)));
        }
        let Some(tasks) = &mut self.tasks else { return Poll::Pending };
        match tasks.poll_join_next(cx) {
            Poll::Pending | Poll::Ready(None) => Poll::Pending,
            Poll::Ready(Some(Ok((id, done)))) => {
                Poll::Ready(self.open.contains(id).then_some((id, Some(done))))
            }
            Poll::Ready(Some(Err(e))) => {
                let is_it = |open: &OpenRequest| open.task.as_ref().is_some_and(|task| task.id() == e.id());
                let found = self.open.iter().find(|(_, open)| is_it(open));
                Poll::Ready(found.map(|(id, _)| (id, None)))
            }
        }
    }

    /// Removes a completed request.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<OpenRequest> {
        self.open.remove(id).map(|open| *open)
    }

    /// Gives one up.
    pub(crate) fn give_up(&mut self, id: RequestId) -> Option<OpenRequest> {
        let open = self.remove(id)?;
        match &open.task {
            // Dropping the task closes its socket, kills its processes, tells its server.
            Some(task) => task.abort(),
            None => self.drop_alone(),
        }
        Some(open)
    }

    /// Gives all up, and waits until they are gone; but not for one that keeps its thread to itself, as
    /// nothing can end that.
    pub(crate) async fn shutdown(&mut self) {
        /// Time allowed for a canceled request to end. It ends as soon as a thread polls it, so that this is
        /// ample.
        const LONG: Duration = Duration::from_secs(1);
        self.drop_alone();
        if let Some(tasks) = &mut self.tasks {
            tasks.abort_all();
            let gone = async { while tasks.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(LONG, gone).await;
        }
    }

    fn drop_alone(&mut self) {
        if let Some(work) = self.alone.take() {
            // Even if it panics, the request has ended.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
        }
    }
}

fn in_task(
    tasks: &mut Option<JoinSet<(RequestId, Completion)>>,
    id: RequestId,
    work: impl Future<Output = Completion> + Send + 'static,
) -> AbortHandle {
    tasks.get_or_insert_default().spawn(async move { (id, work.await) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ToolError;
    use core_ir::Data;
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::sync::oneshot;

    fn id(number: u32) -> RequestId {
        RequestId { strand: 0, number }
    }

    fn tool(work: impl Future<Output = Result<Data, String>> + Send + 'static) -> Portable {
        Portable::Tool(Box::pin(async { work.await.into() }))
    }

    async fn next(all: &mut InFlight) -> Option<(u32, Option<Result<Data, String>>)> {
        let (id, done) = poll_fn(|cx| all.poll_done(cx)).await?;
        all.remove(id);
        let result = done.map(|done| match done {
            Completion::Tool(answer) => answer.result.map_err(ToolError::one_line),
            _ => Err("not of a tool".into()),
        });
        Some((id.number, result))
    }

    #[tokio::test]
    async fn one_has_no_task_until_there_is_another() {
        let mut all = InFlight::default();
        let (answer, first) = oneshot::channel();
        all.begin(id(1), Instant::now(), RequestKind::Tool, tool(async { Ok(first.await.unwrap()) }));
        let pending = poll_fn(|cx| Poll::Ready(all.poll_done(cx).is_pending())).await;
        assert!(pending && all.tasks.is_none());
        all.begin(id(2), Instant::now(), RequestKind::Tool, tool(async { Ok(Data::str("second")) }));
        assert!(all.alone.is_none() && all.get_mut(id(1)).unwrap().task.is_some());
        assert_eq!((all.len(), next(&mut all).await), (2, Some((2, Some(Ok(Data::str("second")))))));
        answer.send(Data::str("first")).unwrap();
        assert_eq!((all.len(), next(&mut all).await), (1, Some((1, Some(Ok(Data::str("first")))))));
        all.begin(id(3), Instant::now(), RequestKind::Tool, tool(async { Ok(Data::Null) }));
        assert!(all.alone.is_some());
        assert_eq!((next(&mut all).await, all.len()), (Some((3, Some(Ok(Data::Null)))), 0));
    }

    #[tokio::test]
    async fn a_panic_ends_its_own_request() {
        let mut all = InFlight::default();
        all.begin(id(1), Instant::now(), RequestKind::Tool, tool(async { panic!("alone") }));
        assert_eq!(next(&mut all).await, Some((1, None)));
        all.begin(id(2), Instant::now(), RequestKind::Tool, tool(std::future::pending()));
        all.begin(id(3), Instant::now(), RequestKind::Tool, tool(async { panic!("with another") }));
        assert_eq!((next(&mut all).await, all.len()), (Some((3, None)), 1));
    }

    #[tokio::test]
    async fn abandoned_requests_are_dropped() {
        struct Blocked(Arc<AtomicBool>);
        impl Drop for Blocked {
            fn drop(&mut self) {
                self.0.store(false, Ordering::SeqCst);
                panic!("nobody is to notice that");
            }
        }
        for others in [false, true] {
            let mut all = InFlight::default();
            let holds = Arc::new(AtomicBool::new(true));
            let held = Blocked(holds.clone());
            let work = tool(async move {
                let _held = held;
                std::future::pending().await
            });
            all.begin(id(1), Instant::now(), RequestKind::Tool, work);
            if others {
                all.begin(id(2), Instant::now(), RequestKind::Tool, tool(std::future::pending()));
            }
            assert!(all.give_up(id(1)).is_some() && all.give_up(id(1)).is_none());
            if others {
                // It is gone when its room is.
                assert_eq!((next(&mut all).await, all.len()), (None, 1));
            }
            assert!(!holds.load(Ordering::SeqCst));
            all.shutdown().await;
            assert_eq!(all.len(), 0);
        }
    }
}
