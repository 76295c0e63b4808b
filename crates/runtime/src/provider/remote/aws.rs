//! Signatures of requests to services of Amazon: version 4, with the headers.
//!
//! Entry point: [`AwsCredentials::headers`].
//!
//! Invariant: the secret key is in no header; only what was computed from it is.

use crate::Secret;
use ring::hmac;
use runs::{hex, percent_encoded, utc};
use sha2::{Digest, Sha256};
use std::time::{SystemTime, UNIX_EPOCH};

/// Credentials of an account at Amazon, and the region of the service.
#[derive(Clone, Debug)]
pub struct AwsCredentials {
    /// Identifier of the key.
    pub access_key: String,
    /// The key.
    pub secret_key: Secret,
    /// Token of a session, if the key is one of a session.
    pub session_token: Option<Secret>,
    /// Region of the service.
    pub region: String,
}

impl AwsCredentials {
    /// The headers that sign a request: names and values.
    pub(super) fn headers(
        &self,
        method: &str,
        url: &reqwest::Url,
        body: &str,
        service: &str,
        now: SystemTime,
    ) -> Vec<(&'static str, String)> {
        let time = timestamp(now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs());
        let day = &time[..8];
        let host = match (url.host_str().unwrap_or_default(), url.port()) {
            (host, Some(port)) => format!("{host}:{port}"),
            (host, None) => host.to_string(),
        };
        let token = self.session_token.as_ref().map(|t| t.expose().to_string());
        // Sorted by name.
        let mut signed = vec![("host", host), ("x-amz-date", time.clone())];
        signed.extend(token.clone().map(|token| ("x-amz-security-token", token)));
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        // The path as it is sent, encoded once more.
        let path: Vec<String> = url.path().split('/').map(percent_encoded).collect();
        let canonical = format!(
            "{method}\n{}\n\n{lines}\n{names}\n{}",
            path.join("/"),
            hex(&Sha256::digest(body.as_bytes()))
        );
        let scope = format!("{day}/{}/{service}/aws4_request", self.region);
        let text =
            format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(canonical.as_bytes())));
        let first = format!("AWS4{}", self.secret_key.expose());
        let mut key = hmac::Key::new(hmac::HMAC_SHA256, first.as_bytes());
        for part in [day, &self.region, service, "aws4_request"] {
            key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        }
        let signature = hex(hmac::sign(&key, text.as_bytes()).as_ref());
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.access_key
        );
        let mut out = vec![("x-amz-date", time), ("authorization", authorization)];
        out.extend(token.map(|token| ("x-amz-security-token", token)));
        out
    }
}

/// A time as `20150830T123600Z`, from the seconds since 1970.
fn timestamp(seconds: u64) -> String {
    utc(seconds).replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, want) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_440_938_160, "20150830T123600Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(timestamp(seconds), want);
        }
    }

    /// The first cases of the tests that Amazon published for signatures.
    #[test]
    fn signatures_are_those_of_the_published_cases() {
        let credentials = AwsCredentials {
            access_key: "AKIDEXAMPLE".into(),
            secret_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session_token: None,
            region: "us-east-1".into(),
        };
        let url = reqwest::Url::parse("https://example.amazonaws.com/").unwrap();
        let now = UNIX_EPOCH + Duration::from_secs(1_440_938_160);
        for (method, want) in [
            ("GET", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("POST", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        ] {
            let headers = credentials.headers(method, &url, "", "service", now);
            let (_, authorization) = headers.iter().find(|(name, _)| *name == "authorization").unwrap();
            assert_eq!(
                *authorization,
                format!(
                    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                     SignedHeaders=host;x-amz-date, Signature={want}"
                )
            );
        }
    }
}
