//! Stores on a Redis server, which agents on several machines may share.
//!
//! Invariant: every operation is one script, which the server runs alone, so agents see each other's writes whole and in one order.
//! Invariant: no message holds a password.
//!
//! A store `NAME` has the keys `entail:{NAME}:values` (what is held, as JSON of the exchange format), `:labels` (of all keys that ever
//! had an entry), `:written` (when, by the clock of whoever wrote), `:order` (the number of the write) and `:number` (the last one).

use super::{Act, Operation, label_of};
use core_ir::Data;
use core_ir::exchange::data_json;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take, and each answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What an operation is. `KEYS` as above. `ARGV`: the last moment of what has expired, the capacity (both may be empty), now, then
/// the key, its label, what to do and the value, then name, label and value of each key that has an initial value.
const SCRIPT: &str = r"
local values, labels, written, order, number = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local expired, capacity, now = ARGV[1], ARGV[2], ARGV[3]
local key, label, act, value = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local function drop(name)
  redis.call('HDEL', values, name)
  redis.call('ZREM', written, name)
  redis.call('ZREM', order, name)
end
local function write(name, its, what)
  redis.call('HSET', values, name, what)
  redis.call('HSETNX', labels, name, its)
  redis.call('ZADD', written, now, name)
  redis.call('ZADD', order, redis.call('INCR', number), name)
  if capacity ~= '' then
    local alike = {}
    for _, other in ipairs(redis.call('ZRANGE', order, 0, -1)) do
      if redis.call('HGET', labels, other) == its then alike[#alike + 1] = other end
    end
    for i = 1, #alike - tonumber(capacity) do drop(alike[i]) end
  end
end
local first = redis.call('HGET', labels, key)
if first and first ~= label then return {'label'} end
if expired ~= '' then
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', written, '-inf', expired)) do drop(old) end
end
for i = 8, #ARGV, 3 do
  if redis.call('HEXISTS', labels, ARGV[i]) == 0 then write(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
end
if act == 'remember' then
  write(key, label, value)
  return {'done'}
end
local held = redis.call('HGET', values, key)
if held then return {'value', held} end
return {'nothing'}
";

/// A Redis server: its address, with what it takes to log in.
#[derive(Clone)]
pub struct RedisServer {
    client: Arc<redis::Client>,
    /// The address without a user and a password.
    shown: String,
}

impl std::fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RedisServer").field(&self.shown).finish()
    }
}

impl RedisServer {
    /// The server at `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://…` (TLS) or `unix:///PATH`. Does not connect.
    ///
    /// # Errors
    /// It is no such address.
    pub fn at(address: &str) -> Result<RedisServer, String> {
        let help = "an address of a Redis server is written `redis://localhost:6379`, `rediss://…` for TLS, or `unix:///PATH`";
        // The error may quote the address, which may hold a password.
        let url = redis::parse_redis_url(address).ok_or(help)?;
        let shown = match url.host_str() {
            Some(host) => {
                let port = url.port().map(|p| format!(":{p}")).unwrap_or_default();
                format!("{}://{host}{port}{}", url.scheme(), url.path())
            }
            None => format!("{}://{}", url.scheme(), url.path()),
        };
        let client =
            redis::Client::open(url).map_err(|e| format!("`{shown}` is no Redis server: {}", clean(&e)))?;
        // For `rediss`, where no other choice was made.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(RedisServer { client: Arc::new(client), shown })
    }

    /// Whether the address says a password.
    pub fn has_password(&self) -> bool {
        self.client.get_connection_info().redis_settings().password().is_some()
    }
}

/// A server in use.
pub(super) struct Client {
    server: RedisServer,
    connection: Option<redis::Connection>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.server.fmt(f)
    }
}

impl Client {
    pub(super) fn of(server: RedisServer) -> Client {
        Client { server, connection: None }
    }

    pub(super) fn carry_out(&mut self, operation: Operation) -> Result<Option<Data>, String> {
        let Operation { decl, key, act, now } = &operation;
        let store = &decl.name;
        let mut script = redis::cmd("EVAL");
        script.arg(SCRIPT).arg(5);
        for part in ["values", "labels", "written", "order", "number"] {
            script.arg(format!("entail:{{{store}}}:{part}"));
        }
        let number = |n: Option<i64>| n.map(|n| n.to_string()).unwrap_or_default();
        let capacity = decl.capacity.map(|c| i64::try_from(c).unwrap_or(i64::MAX));
        script.arg(number(operation.expired())).arg(number(capacity)).arg(now);
        script.arg(&*key.name).arg(label_of(key));
        match act {
            Act::Recall => script.arg("recall").arg(""),
            Act::Remember(value) => script.arg("remember").arg(data_json(value).to_string()),
        };
        for key in &decl.keys {
            if let Some(initial) = &key.initial {
                script.arg(&*key.name).arg(label_of(key)).arg(data_json(initial).to_string());
            }
        }
        let answer = self.ask(&script).map_err(|why| format!("store `{store}`: {why}"))?;
        match (answer.first().map(String::as_str), answer.get(1)) {
            (Some("label"), _) => Err(operation.another_label()),
            (Some("value"), Some(text)) => operation.of_text(text).map(Some),
            (Some("done" | "nothing"), _) => Ok(None),
            _ => Err(format!("store `{store}`: {} gave an answer that is none", self.server.shown)),
        }
    }

    fn ask(&mut self, script: &redis::Cmd) -> Result<Vec<String>, String> {
        let used_before = self.connection.is_some();
        match self.ask_once(script) {
            // The server was started anew since. To do it twice does no harm: the same value at the same key.
            Err(e) if used_before && e.is_connection_dropped() => self.ask_once(script),
            answer => answer,
        }
        .map_err(|e| {
            let server = &self.server.shown;
            if e.is_timeout() {
                return format!("the Redis server `{server}` did not answer within {} s", PATIENCE.as_secs());
            }
            if e.is_io_error() {
                return format!(
                    "cannot reach the Redis server `{server}`: {} (help: start it, or correct its address in `entail.toml` or `REDIS_URL`)",
                    clean(&e)
                );
            }
            // Without a password, a question as long as ours is refused in other words.
            let unknown = e.code() == Some("NOAUTH") || clean(&e).contains("unauthenticated");
            if e.kind() == redis::ErrorKind::AuthenticationFailed || unknown {
                return format!("the Redis server `{server}` refuses the password, or wants one: {}", clean(&e));
            }
            if clean(&e).contains("WRONGTYPE") {
                return format!(
                    "the Redis server `{server}` has keys of another kind where the store's should be: {}",
                    clean(&e)
                );
            }
            format!("the Redis server `{server}` refused: {}", clean(&e))
        })
    }

    fn ask_once(&mut self, script: &redis::Cmd) -> Result<Vec<String>, redis::RedisError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let new = self.server.client.get_connection_with_timeout(PATIENCE)?;
                new.set_read_timeout(Some(PATIENCE))?;
                new.set_write_timeout(Some(PATIENCE))?;
                none.insert(new)
            }
        };
        let answer = script.query(connection);
        // After a time limit an answer may still come, to a question that was not asked.
        if answer.as_ref().is_err_and(|e: &redis::RedisError| e.is_io_error() || e.is_timeout()) {
            self.connection = None;
        }
        answer
    }
}

/// An error in one short line.
fn clean(e: &redis::RedisError) -> String {
    diagnostics::clip_to(&e.to_string().replace(['\n', '\r'], " "), 200)
}
