//! Signatures of the engine's requests, by which a worker knows its engine.
//!
//! Entry point: [`IdentityKeys`]. The engine signs each request with a key of its own: a token in the JSON
//! Web Token format, for the path of the request and for a minute.
//!
//! Invariant: the token covers path and time, not the body. Whoever can change requests on their way needs to
//! be kept out by the network.

use crate::error::Error;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::HeaderMap;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value as Json;

/// Beginning of a key, as Restate shows it.
const PREFIX: &str = "publickeyv1_";

/// The digits of base 58.
const DIGITS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Public keys of engines. Without any, all requests are taken.
#[derive(Clone, Debug, Default)]
pub struct IdentityKeys(Vec<[u8; 32]>);

impl IdentityKeys {
    /// Reads keys as Restate shows them: `publickeyv1_` and the key in base 58.
    ///
    /// # Errors
    /// One is no such key.
    pub fn parse(keys: &[String]) -> Result<IdentityKeys, Error> {
        let key = |text: &String| {
            text.strip_prefix(PREFIX).and_then(base_58).ok_or_else(|| {
                Error::new(format!("`{}` is no key of an engine", diagnostics::clip_to(text, 80)))
                    .with_help("Restate logs its key when it starts: `publickeyv1_…`")
            })
        };
        keys.iter().map(key).collect::<Result<_, _>>().map(IdentityKeys)
    }

    /// Returns whether there is a key, so that requests of others are refused.
    pub fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns whether one of the engines has signed a request for this path; `now` is in seconds since 1970.
    pub(crate) fn admits(&self, headers: &HeaderMap, path: &str, now: u64) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let token = header("x-restate-jwt-v1").filter(|_| header("x-restate-signature-scheme") == Some("v1"));
        token.is_some_and(|token| self.is_signed(token, path, now).unwrap_or(false))
    }

    fn is_signed(&self, token: &str, path: &str, now: u64) -> Option<bool> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (head, claims) = signed.split_once('.')?;
        let json = |part: &str| serde_json::from_slice::<Json>(&URL_SAFE_NO_PAD.decode(part).ok()?).ok();
        let (head, claims) = (json(head)?, json(claims)?);
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let verifies = |key: &[u8; 32]| {
            UnparsedPublicKey::new(&ED25519, key).verify(signed.as_bytes(), &signature).is_ok()
        };
        let is_for = |audience: &Json| audience.as_str() == Some(path);
        let audience = &claims["aud"];
        Some(
            head["alg"] == "EdDSA"
                && self.0.iter().any(verifies)
                && (is_for(audience) || audience.as_array().is_some_and(|all| all.iter().any(is_for)))
                && claims["nbf"].as_u64()? <= now
                && now < claims["exp"].as_u64()?,
        )
    }
}

/// The 32 bytes of a text in base 58; `None` if it is no such text.
fn base_58(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0u8; 32];
    for digit in text.bytes() {
        let mut carry = DIGITS.iter().position(|d| *d == digit)?;
        for byte in bytes.iter_mut().rev() {
            carry += usize::from(*byte) * 58;
            *byte = u8::try_from(carry % 256).ok()?;
            carry /= 256;
        }
        // The number is larger than a key.
        if carry > 0 {
            return None;
        }
    }
    (!text.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::json;

    fn base_58_of(bytes: &[u8]) -> String {
        let mut digits = Vec::new();
        for byte in bytes {
            let mut carry = usize::from(*byte);
            for digit in &mut digits {
                carry += *digit * 256;
                *digit = carry % 58;
                carry /= 58;
            }
            while carry > 0 {
                digits.push(carry % 58);
                carry /= 58;
            }
        }
        digits.iter().rev().map(|d| char::from(DIGITS[*d])).collect()
    }

    fn token(key: &Ed25519KeyPair, algorithm: &str, claims: &Json) -> String {
        let part = |json: &Json| URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", part(&json!({"typ": "JWT", "alg": algorithm})), part(claims));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())))
    }

    #[test]
    fn requests_of_the_engine_alone_are_admitted() {
        let key = |seed: u8| Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        let (engine, stranger) = (key(1), key(2));
        let public = format!("{PREFIX}{}", base_58_of(engine.public_key().as_ref()));
        let keys = IdentityKeys::parse(&[public]).unwrap();
        let path = "/invoke/entail.a.main/run";
        let claims = json!({"aud": path, "nbf": 100, "iat": 100, "exp": 160});
        let admits = |token: &str, scheme: &str, path: &str, now: u64| {
            let mut headers = HeaderMap::new();
            headers.insert("x-restate-signature-scheme", scheme.parse().unwrap());
            headers.insert("x-restate-jwt-v1", token.parse().unwrap());
            keys.admits(&headers, path, now)
        };
        let good = token(&engine, "EdDSA", &claims);
        assert!(admits(&good, "v1", path, 100) && admits(&good, "v1", path, 159));
        let lists = json!({"aud": ["/x", path], "nbf": 100, "exp": 160});
        assert!(admits(&token(&engine, "EdDSA", &lists), "v1", path, 120));
        for (token, scheme, path, now) in [
            (good.clone(), "v1", path, 160),
            (good.clone(), "v1", path, 99),
            (good.clone(), "v1", "/invoke/entail.a.main/answer", 120),
            (good.clone(), "unsigned", path, 120),
            (good[..good.len() - 2].to_string(), "v1", path, 120),
            (format!("{good}x"), "v1", path, 120),
            (token(&stranger, "EdDSA", &claims), "v1", path, 120),
            (token(&engine, "none", &claims), "v1", path, 120),
            (token(&engine, "EdDSA", &json!({"aud": path, "nbf": 100})), "v1", path, 120),
            (String::new(), "v1", path, 120),
        ] {
            assert!(!admits(&token, scheme, path, now), "{token} {scheme} {path} {now}");
        }
        assert!(!keys.admits(&HeaderMap::new(), path, 120));
        assert!(IdentityKeys::default().admits(&HeaderMap::new(), path, 120));
    }

    #[test]
    fn keys_are_read_as_they_are_shown() {
        let known = "publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp".to_string();
        let keys = IdentityKeys::parse(std::slice::from_ref(&known)).unwrap();
        assert_eq!(format!("{PREFIX}{}", base_58_of(&keys.0[0])), known);
        for wrong in ["", "publickeyv1_", "ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp", "publickeyv1_0OIl"]
        {
            assert!(IdentityKeys::parse(&[wrong.to_string()]).is_err(), "{wrong}");
        }
        assert!(IdentityKeys::parse(&[format!("{known}zz")]).is_err());
    }
}
