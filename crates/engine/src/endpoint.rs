//! The HTTP/2 endpoint that the engine calls.
//!
//! Entry point: [`serve`]. Connections are without TLS and without an upgrade (h2c, prior knowledge).

use crate::manifest::{Workflow, accepted, manifest};
use crate::worker::Worker;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use restate_sdk_shared_core::{CoreVM, VM, VMOptions};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Invocations that one connection carries at a time.
const MAX_STREAMS: u32 = 4096;

/// Serves until it is told to stop. Attempts that are under way are given up then; the engine begins others.
pub(crate) async fn serve(worker: Arc<Worker>, listener: TcpListener, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let Ok((stream, _)) = accepted else {
            // Out of files, or the client has left already.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let worker = worker.clone();
        connections.spawn(async move {
            let service = service_fn(|request| {
                let worker = worker.clone();
                async move { Ok::<_, Infallible>(answer(&worker, request)) }
            });
            let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            http.max_concurrent_streams(MAX_STREAMS)
                .initial_stream_window_size(1 << 20)
                .initial_connection_window_size(16 << 20);
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
    connections.shutdown().await;
}

fn answer(worker: &Arc<Worker>, request: Request<Incoming>) -> Answer {
    let path = request.uri().path().to_string();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if path != "/health" && !worker.identity().admits(request.headers(), &path, now) {
        return plain(StatusCode::UNAUTHORIZED, "the request is not signed by the engine of this worker");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        ["discover"] => discover(worker, &request),
        ["health"] => plain(StatusCode::OK, "ok"),
        ["invoke", service, handler] => invoke(worker, service, handler, request),
        _ => plain(StatusCode::NOT_FOUND, "not found"),
    }
}

fn plain(status: StatusCode, text: &str) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(text.to_string())).boxed());
    *response.status_mut() = status;
    response
}

fn discover(worker: &Worker, request: &Request<Incoming>) -> Answer {
    let accept = request.headers().get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let Some((media, version)) = accepted(accept) else {
        return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "no version of the description is known to both");
    };
    let workflows: Vec<Workflow<'_>> = worker.workflows().collect();
    let mut response = plain(StatusCode::OK, &manifest(&workflows, version).to_string());
    if let Ok(media) = media.parse() {
        response.headers_mut().insert(CONTENT_TYPE, media);
    }
    response
}

fn invoke(worker: &Arc<Worker>, service: &str, handler: &str, request: Request<Incoming>) -> Answer {
    let Some(work) = worker.handler(service, handler) else {
        return plain(StatusCode::NOT_FOUND, "no such handler");
    };
    let vm = match CoreVM::new(request.headers().clone(), VMOptions::default()) {
        Ok(vm) => vm,
        Err(e) => {
            let status = StatusCode::from_u16(e.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return plain(status, e.message());
        }
    };
    let head = vm.get_response_head();
    let (output, bytes) = unbounded_channel();
    let task = tokio::spawn(worker.clone().work(work, vm, request.into_body(), output));
    let mut response = Response::new(Output { bytes, task }.boxed());
    *response.status_mut() = StatusCode::from_u16(head.status_code).unwrap_or(StatusCode::OK);
    for header in &head.headers {
        if let (Ok(name), Ok(value)) = (header.key.parse::<hyper::header::HeaderName>(), header.value.parse())
        {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The messages of an attempt. If the engine drops the stream, the attempt ends.
struct Output {
    bytes: UnboundedReceiver<Bytes>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Output {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Body for Output {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.bytes.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
