//! Connections of a server: bounded in number, and none waits long for what a client does not send.
//!
//! Entry point: [`serve`].
//!
//! Invariant: a client that only connects, or never completes a request, keeps nobody else out. When the
//! limit of connections is reached, the oldest one without a request is closed, of the address with the most
//! connections.
//! Invariant: a connection with a request is never closed for another one.

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Bytes of the head of a request.
const MAX_HEAD: usize = 64 << 10;

/// Time for which the system is left alone when it gives no more connections.
const PAUSE: Duration = Duration::from_millis(50);

/// Returns the maximum number of connections: the requested number, but at most half of the process's limit
/// of open files.
pub(crate) fn most(wanted: usize) -> usize {
    #[cfg(unix)]
    {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let half = limit.map_or(usize::MAX, |n| usize::try_from(n / 2).unwrap_or(usize::MAX));
        wanted.min(half).max(1)
    }
    #[cfg(not(unix))]
    wanted.max(1)
}

/// The connections that there are.
#[derive(Default)]
struct ConnectionTable {
    open: HashMap<u64, Entry>,
    next: u64,
}

struct Entry {
    peer: IpAddr,
    /// Requests that have arrived and are not answered to the last byte.
    requests: Arc<AtomicUsize>,
    close: CancellationToken,
}

impl ConnectionTable {
    /// Makes room for one more; whether there is any.
    fn make_room(&mut self, most: usize) -> bool {
        if self.open.len() < most {
            return true;
        }
        let idle = |entry: &&Entry| entry.requests.load(Ordering::SeqCst) == 0;
        let mut by_peer: HashMap<IpAddr, (usize, u64)> = HashMap::new();
        for (number, entry) in self.open.iter().filter(|(_, entry)| idle(entry)) {
            let (count, oldest) = by_peer.entry(entry.peer).or_insert((0, *number));
            *count += 1;
            *oldest = (*oldest).min(*number);
        }
        let oldest = by_peer.into_values().max_by_key(|(count, oldest)| (*count, std::cmp::Reverse(*oldest)));
        let Some((_, number)) = oldest else { return false };
        if let Some(entry) = self.open.remove(&number) {
            entry.close.cancel();
        }
        true
    }
}

fn lock(table: &Mutex<ConnectionTable>) -> MutexGuard<'_, ConnectionTable> {
    // A panic while it was held leaves an entry that is there or not.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves until it is told to stop, and then until the last answer is given.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Router,
    most: usize,
    head: Duration,
    stop: CancellationToken,
) {
    let table = Arc::new(Mutex::new(ConnectionTable::default()));
    let app = TowerToHyperService::new(app);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        // Out of files, or the client has left already.
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (requests, close) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
        let number = {
            let mut table = lock(&table);
            if !table.make_room(most) {
                drop(table);
                refuse(&stream);
                continue;
            }
            let number = table.next;
            table.next += 1;
            let entry = Entry { peer: peer.ip(), requests: requests.clone(), close: close.clone() };
            table.open.insert(number, entry);
            number
        };
        let (app, table, stop) = (app.clone(), table.clone(), stop.clone());
        connections.spawn(async move {
            connection(stream, peer, app, requests, head, close, stop).await;
            lock(&table).open.remove(&number);
        });
    }
    while connections.join_next().await.is_some() {}
}

/// Says that there is no room, if the client takes that at once.
fn refuse(stream: &TcpStream) {
    let said = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";
    let _ = stream.try_write(said.as_bytes());
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    app: TowerToHyperService<Router>,
    requests: Arc<AtomicUsize>,
    head: Duration,
    close: CancellationToken,
    stop: CancellationToken,
) {
    // Events are told one by one.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let busy = Busy::of(&requests);
        let answer = app.call(request);
        async move {
            let answer = match answer.await {
                Ok(answer) => answer,
                Err(never) => match never {},
            };
            Ok::<_, Infallible>(answer.map(|body| Answer { body, _busy: busy }))
        }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(MAX_HEAD).half_close(false);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut ending = false;
    loop {
        tokio::select! {
            // Errors here concern only the client and its connection.
            _ = serving.as_mut() => break,
            () = close.cancelled() => break,
            () = stop.cancelled(), if !ending => {
                ending = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Counts a request for as long as it is not answered.
struct Busy(Arc<AtomicUsize>);

impl Busy {
    fn of(requests: &Arc<AtomicUsize>) -> Busy {
        requests.fetch_add(1, Ordering::SeqCst);
        Busy(requests.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The body of an answer, which is at work until its last byte is sent.
struct Answer {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(table: &mut ConnectionTable, peer: [u8; 4], requests: usize) -> CancellationToken {
        let close = CancellationToken::new();
        let entry =
            Entry { peer: peer.into(), requests: Arc::new(AtomicUsize::new(requests)), close: close.clone() };
        table.open.insert(table.next, entry);
        table.next += 1;
        close
    }

    #[test]
    fn the_oldest_without_a_request_gives_way_of_whoever_has_the_most() {
        let mut table = ConnectionTable::default();
        let other = entry(&mut table, [10, 0, 0, 1], 0);
        let busy = entry(&mut table, [10, 0, 0, 2], 1);
        let oldest = entry(&mut table, [10, 0, 0, 2], 0);
        let newer = entry(&mut table, [10, 0, 0, 2], 0);
        assert!(table.make_room(5) && !oldest.is_cancelled());
        assert!(table.make_room(4) && oldest.is_cancelled());
        assert!(![&other, &busy, &newer].iter().any(|c| c.is_cancelled()));
        // Two have one each: the older one.
        assert!(table.make_room(3) && other.is_cancelled() && !newer.is_cancelled());
        assert!(table.make_room(2) && newer.is_cancelled());
        assert!(!table.make_room(1) && !busy.is_cancelled());
    }
}
