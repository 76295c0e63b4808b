//! Keys of those who may approve calls from outside a run.
//!
//! Entry points: [`Approvers`], the public keys that a run knows, [`SigningKey`], which signs answers, and
//! [`SealedKey`], how a signing key is kept in a file.
//!
//! Invariant: a process that runs tools has public keys alone. The private key is in a file, encrypted under
//! a passphrase, and in the memory of the process that signs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::pbkdf2;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// Prefix of a public key in text form.
const PREFIX: &str = "ed25519:";

/// Iterations of PBKDF2-HMAC-SHA256 for a new file.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(600_000).unwrap();

/// A file that asks for more iterations is refused, so that opening one ends.
const MAX_ITERATIONS: u32 = 20_000_000;

/// The version of the file.
const VERSION: u32 = 1;

/// Reason why a key can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The text is no public key.
    NotAKey,
    /// The file is no sealed key, or one of another version.
    NotSealed,
    /// The passphrase is wrong, or the file was changed.
    Passphrase,
    /// The system gives no random numbers.
    Random,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyError::NotAKey => "it is not a public key; expected `ed25519:` and 32 bytes as base64",
            KeyError::NotSealed => "it is not the file of an approver's key",
            KeyError::Passphrase => "the passphrase is wrong, or the file was changed",
            KeyError::Random => "the system provides no random numbers",
        })
    }
}

impl std::error::Error for KeyError {}

/// The public key of an approver, as text `ed25519:` and base64.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Returns whether this key's owner signed the message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature).is_ok()
    }
}

impl PublicKey {
    /// Returns whether this key's owner signed a receipt.
    pub fn verifies_receipt(&self, body: &str, signature: &[u8]) -> bool {
        self.verifies(&receipt(body), signature)
    }
}

/// The bytes that are signed of a receipt. The beginning keeps a signature for something else from being
/// valid for one: that of an approval begins with a bracket.
fn receipt(body: &str) -> Vec<u8> {
    format!("entail receipt 1\n{body}").into_bytes()
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<PublicKey, KeyError> {
        let bytes = text.strip_prefix(PREFIX).and_then(|t| BASE64.decode(t).ok());
        bytes.and_then(|b| b.try_into().ok()).map(PublicKey).ok_or(KeyError::NotAKey)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", BASE64.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// The approvers whose signed answers count, with their public keys by name (`[approvers]` of `entail.toml`).
#[derive(Clone, Debug, Default)]
pub struct Approvers(Arc<BTreeMap<String, PublicKey>>);

impl Approvers {
    /// These approvers.
    pub fn new(keys: impl IntoIterator<Item = (String, PublicKey)>) -> Approvers {
        Approvers(Arc::new(keys.into_iter().collect()))
    }

    /// Returns whether there is no approver.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key of an approver.
    pub fn key(&self, name: &str) -> Option<&PublicKey> {
        self.0.get(name)
    }

    /// The name of the approver who has this key.
    pub fn name_of(&self, key: &PublicKey) -> Option<&str> {
        self.0.iter().find(|(_, k)| *k == key).map(|(name, _)| name.as_str())
    }

    /// The names of the approvers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// A private key that signs answers in an approver's name.
pub struct SigningKey {
    name: String,
    pair: Ed25519KeyPair,
}

impl SigningKey {
    /// A new key, in memory alone.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn generate(name: &str) -> Result<SigningKey, KeyError> {
        SigningKey::of_seed(name, &random::<32>()?).ok_or(KeyError::Random)
    }

    /// The name of its owner.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the key under a name of the settings.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> SigningKey {
        SigningKey { name: name.into(), ..self }
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey(bytes)
    }

    /// Signs the body of a receipt.
    pub fn sign_receipt(&self, body: &str) -> Vec<u8> {
        self.sign(&receipt(body))
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }

    fn of_seed(name: &str, seed: &[u8]) -> Option<SigningKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).ok()?;
        Some(SigningKey { name: name.to_string(), pair })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Bytes that nobody can guess, such as the salt of a commitment.
///
/// # Errors
/// The system gives no random numbers.
pub fn salt() -> Result<[u8; 32], KeyError> {
    random()
}

/// A signing key, encrypted under a passphrase: PBKDF2-HMAC-SHA256 and ChaCha20-Poly1305.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedKey {
    version: u32,
    /// The name that its owner gave it.
    pub name: String,
    /// The public half, as text.
    key: String,
    iterations: u32,
    salt: String,
    sealed: String,
}

impl SealedKey {
    /// A new key.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn generate(name: &str, passphrase: &str) -> Result<SealedKey, KeyError> {
        let (seed, salt) = (random::<32>()?, random::<16>()?);
        let public = SigningKey::of_seed(name, &seed).ok_or(KeyError::Random)?.public();
        let mut sealed = seed.to_vec();
        encryption(passphrase, &salt, ITERATIONS)
            .and_then(|key| key.seal_in_place_append_tag(nonce(), Aad::from(public.0), &mut sealed).ok())
            .ok_or(KeyError::Random)?;
        Ok(SealedKey {
            version: VERSION,
            name: name.to_string(),
            key: public.to_string(),
            iterations: ITERATIONS.get(),
            salt: BASE64.encode(salt),
            sealed: BASE64.encode(sealed),
        })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// It is no sealed key of this version.
    pub fn parse(text: &str) -> Result<SealedKey, KeyError> {
        let sealed: SealedKey = serde_json::from_str(text).map_err(|_| KeyError::NotSealed)?;
        let is_ours = sealed.version == VERSION && sealed.public().is_ok();
        if is_ours { Ok(sealed) } else { Err(KeyError::NotSealed) }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        // Strings and numbers alone can't fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The public half.
    ///
    /// # Errors
    /// The file has none.
    pub fn public(&self) -> Result<PublicKey, KeyError> {
        self.key.parse()
    }

    /// Decrypts the key. Takes a good part of a second, so that passphrases can't be tried quickly.
    ///
    /// # Errors
    /// The passphrase is wrong, or the file was changed.
    pub fn open(&self, passphrase: &str) -> Result<SigningKey, KeyError> {
        let public = self.public()?;
        let iterations = NonZeroU32::new(self.iterations).filter(|n| n.get() <= MAX_ITERATIONS);
        let salt = BASE64.decode(&self.salt).map_err(|_| KeyError::NotSealed)?;
        let mut sealed = BASE64.decode(&self.sealed).map_err(|_| KeyError::NotSealed)?;
        let key = encryption(passphrase, &salt, iterations.ok_or(KeyError::NotSealed)?);
        let key = key.ok_or(KeyError::NotSealed)?;
        let seed = key.open_in_place(nonce(), Aad::from(public.0), &mut sealed);
        let seed = seed.map_err(|_| KeyError::Passphrase)?;
        SigningKey::of_seed(&self.name, seed).filter(|k| k.public() == public).ok_or(KeyError::Passphrase)
    }
}

fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| KeyError::Random)?;
    Ok(bytes)
}

/// The key that encrypts the file.
fn encryption(passphrase: &str, salt: &[u8], iterations: NonZeroU32) -> Option<LessSafeKey> {
    let mut bytes = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, passphrase.as_bytes(), &mut bytes);
    UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok().map(LessSafeKey::new)
}

/// Each salt makes a key of its own, which encrypts once.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Writes a new file that only its owner can read.
///
/// # Errors
/// It exists, or can't be written.
pub fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_key_opens_with_its_passphrase_alone() {
        let sealed = SealedKey::generate("alice", "correct horse").unwrap();
        let text = sealed.text();
        let read = SealedKey::parse(&text).unwrap();
        let key = read.open("correct horse").unwrap();
        assert_eq!((key.name(), key.public()), ("alice", read.public().unwrap()));
        assert!(key.public().verifies(b"yes", &key.sign(b"yes")));
        assert!(!key.public().verifies(b"no", &key.sign(b"yes")));
        assert_eq!(read.open("correct hors").unwrap_err(), KeyError::Passphrase);
        // The file of one key with the public half of another one.
        let other = SealedKey { key: PublicKey([7; 32]).to_string(), ..read };
        assert_eq!(other.open("correct horse").unwrap_err(), KeyError::Passphrase);
        assert_eq!(SealedKey::parse("{}").unwrap_err(), KeyError::NotSealed);
        assert_eq!("ed25519:AAAA".parse::<PublicKey>().unwrap_err(), KeyError::NotAKey);
    }
}
