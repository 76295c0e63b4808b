//! Stores on a Redis server, which agents on several machines may share.
//!
//! Invariant: every operation is one script, which the server runs alone, so agents see each other's writes
//! whole and in one order.
//! Invariant: no message holds a password.
//!
//! Each account of a store is a hash at `entail:account:` and the owner, the store and the label, each
//! written as its length, a colon and itself; the owner of what is the local user's is empty. The fields are
//! the keys, and an entry is JSON: `v` is the value (JSON of the exchange format), `expires` (milliseconds
//! since 1970) and `capacity` are its limits, and `n` is the number of the write.

use super::{KeyOp, Operation, label_of, prefixed};
use core_ir::exchange::data_json;
use core_ir::{Data, Name};
use machine::store::{EntryLimits, initial};
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout of a connection, and of each answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// An operation. `KEYS`: the account. `ARGV`: now, the key, what to do, then the value and its limits (empty
/// for none). Answers with the keys of all entries that remain, after the value if that is asked for. What is
/// no entry does not count.
const SCRIPT: &str = r"
local account, now, key, act = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local entries, damaged, last = {}, false, 0
local all = redis.call('HGETALL', account)
for i = 1, #all, 2 do
  local ok, entry = pcall(cjson.decode, all[i + 1])
  if ok and type(entry) == 'table' and type(entry.v) == 'string' and tonumber(entry.n) then
    entry.key, entry.n = all[i], tonumber(entry.n)
    if entry.n > last then last = entry.n end
    entries[#entries + 1] = entry
  elseif all[i] == key then
    damaged = true
  end
end
table.sort(entries, function(a, b) return a.n > b.n end)
local function kept(these)
  local out = {}
  for _, entry in ipairs(these) do
    local expires, capacity = tonumber(entry.expires), tonumber(entry.capacity)
    if (not expires or now < expires) and (not capacity or #out < capacity) then out[#out + 1] = entry end
  end
  return out
end
local remain = kept(entries)
if act == 'recall' then
  if damaged then return {'damaged'} end
  local answer = {'nothing', ''}
  for _, entry in ipairs(remain) do
    if entry.key == key then answer[1], answer[2] = 'value', entry.v end
    answer[#answer + 1] = entry.key
  end
  return answer
end
local written = {key = key, v = ARGV[4], expires = ARGV[5], capacity = ARGV[6], n = last + 1}
local others = {written}
for _, entry in ipairs(remain) do
  if entry.key ~= key then others[#others + 1] = entry end
end
local stays = {}
for _, entry in ipairs(kept(others)) do stays[entry.key] = true end
for _, entry in ipairs(entries) do
  if not stays[entry.key] then redis.call('HDEL', account, entry.key) end
end
if stays[key] then
  local text = cjson.encode({v = ARGV[4], expires = ARGV[5], capacity = ARGV[6], n = string.format('%.0f', last + 1)})
  redis.call('HSET', account, key, text)
else
  redis.call('HDEL', account, key)
end
return {'done'}
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
    /// The server at `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://…` (TLS) or `unix:///PATH`.
    /// Does not connect.
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
        let client = redis::Client::open(url)
            .map_err(|e| format!("`{shown}` is not a Redis server: {}", clean(&e)))?;
        // For `rediss`, where no other choice was made.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(RedisServer { client: Arc::new(client), shown })
    }

    /// Returns true if the address contains a password.
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
        let Operation { owner, decl, key, act, now } = &operation;
        let store = &decl.name;
        let account = [*owner, &**store, &label_of(key)].map(prefixed).concat();
        let mut script = redis::cmd("EVAL");
        script.arg(SCRIPT).arg(1).arg(format!("entail:account:{account}")).arg(now).arg(&*key.name);
        match act {
            KeyOp::Recall => script.arg("recall"),
            KeyOp::Remember(value) => {
                let limits = EntryLimits::of(decl, *now);
                let number = |n: Option<i64>| n.map(|n| n.to_string()).unwrap_or_default();
                let capacity = limits.capacity.map(|c| i64::try_from(c).unwrap_or(i64::MAX));
                let value = data_json(value).to_string();
                script.arg("remember").arg(value).arg(number(limits.expires)).arg(number(capacity))
            }
        };
        let answer = self.ask(&script).map_err(|why| format!("store `{store}`: {why}"))?;
        match (answer.first().map(String::as_str), answer.get(1)) {
            (Some("value"), Some(text)) => operation.of_text(text).map(Some),
            (Some("nothing"), _) => {
                let written: Vec<Name> = answer.iter().skip(2).map(|k| k.as_str().into()).collect();
                Ok(initial(decl, key, &written, *now).cloned())
            }
            (Some("done"), _) => Ok(None),
            (Some("damaged"), _) => {
                Err(format!("key `{}` of store `{store}`: what it holds is not an entry", key.name))
            }
            _ => Err(format!("store `{store}`: {} gave an answer that is none", self.server.shown)),
        }
    }

    fn ask(&mut self, script: &redis::Cmd) -> Result<Vec<String>, String> {
        let used_before = self.connection.is_some();
        let begun = Instant::now();
        let mut answer = self.ask_once(script);
        // To do it twice does no harm: the same value at the same key.
        while answer.as_ref().is_err_and(is_interrupted) && begun.elapsed() < PATIENCE {
            answer = self.ask_once(script);
        }
        match answer {
            // The server has restarted since.
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
                return format!("the Redis server `{server}` rejects the password, or requires one: {}", clean(&e));
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
        // An answer that arrives after its time limit would be read as that of the next question.
        if answer.as_ref().is_err_and(|e: &redis::RedisError| e.is_io_error() || e.is_timeout()) {
            self.connection = None;
        }
        answer
    }
}

/// Returns true if a signal ended a wait, as when the process of a tool ends. The system does not resume a
/// wait with a time limit.
fn is_interrupted(e: &redis::RedisError) -> bool {
    let source = e.source().and_then(|e| e.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let cause = source.and_then(|e| e.downcast_ref::<io::Error>());
    cause.is_some_and(|e| e.kind() == io::ErrorKind::Interrupted)
}

/// An error in one short line.
fn clean(e: &redis::RedisError) -> String {
    diagnostics::clip_to(&e.to_string().replace(['\n', '\r'], " "), 200)
}
