//! Stand-in for stores on a Postgres server in a build without the feature `postgres`.

use super::Operation;
use crate::PostgresServer;
use core_ir::Data;
use std::convert::Infallible;

/// A server in use.
#[derive(Debug)]
pub(super) struct Client(Infallible);

impl Client {
    pub(super) fn of(server: &PostgresServer) -> Client {
        server.absent()
    }

    pub(super) fn carry_out(&mut self, _: Operation) -> Result<Option<Data>, String> {
        match self.0 {}
    }
}
