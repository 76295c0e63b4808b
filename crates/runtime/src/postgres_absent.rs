//! Stand-in for Postgres servers in a build without the feature `postgres`: an address is refused.

use std::convert::Infallible;
use std::fmt;

/// A Postgres server; a build without the feature `postgres` has none.
#[derive(Clone, Debug)]
pub struct PostgresServer(Infallible);

impl PostgresServer {
    /// The server at an address.
    ///
    /// # Errors
    /// Always: this build has no client of Postgres.
    pub fn at(_: &str, _: Option<&str>) -> Result<PostgresServer, String> {
        Err("this program was built without Postgres (help: build it with `--features postgres`)".to_string())
    }

    /// Returns false: the address is refused whatever it holds.
    pub fn shows_password(_: &str) -> bool {
        false
    }

    /// There is no server.
    pub(crate) fn absent(&self) -> ! {
        match self.0 {}
    }
}

impl fmt::Display for PostgresServer {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.absent()
    }
}
