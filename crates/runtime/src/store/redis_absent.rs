//! Stand-in for stores on a Redis server in a build without the feature `redis`: an address is refused.

use super::Operation;
use core_ir::Data;
use std::convert::Infallible;

/// A Redis server; a build without the feature `redis` has none.
#[derive(Clone, Debug)]
pub struct RedisServer(Infallible);

impl RedisServer {
    /// The server at an address.
    ///
    /// # Errors
    /// Always: this build has no client of Redis.
    pub fn at(_: &str) -> Result<RedisServer, String> {
        Err("this program was built without Redis (help: build it with `--features redis`)".to_string())
    }

    /// Returns true if the address contains a password.
    pub fn has_password(&self) -> bool {
        match self.0 {}
    }
}

/// A server in use.
#[derive(Debug)]
pub(super) struct Client(Infallible);

impl Client {
    pub(super) fn of(server: RedisServer) -> Client {
        match server.0 {}
    }

    pub(super) fn carry_out(&mut self, _: Operation) -> Result<Option<Data>, String> {
        match self.0 {}
    }
}
