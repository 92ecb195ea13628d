//! AWS-LC's ML-DSA (FIPS 204) and ML-KEM (FIPS 203) for Node.js. `src/crypto/native/addon.ts` declares the same
//! interface for TypeScript.

#![deny(unsafe_op_in_unsafe_fn)]

mod cpu;
mod evp;
mod job;
mod key;
mod parameter_set;

use std::sync::{Arc, Mutex, PoisonError};

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;

use evp::{Bytes, equal_secrets};
use job::{Job, start};
use key::Key;
use parameter_set::ParameterSet;

/// The version of this library, which the loading program compares with the one it requires.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The version of AWS-LC, such as "5.12.0".
#[napi]
pub fn library_version() -> &'static str {
    let text = aws_lc_sys::AWSLC_VERSION_NUMBER_STRING;
    text.strip_suffix(b"\0")
        .and_then(|text| std::str::from_utf8(text).ok())
        .unwrap_or("of unknown version")
}

/// Returns the code that computes: "AVX2", "NEON" or "portable".
#[napi]
pub fn cpu_path() -> &'static str {
    cpu::path()
}

/// Generates a key pair.
#[napi]
pub fn generate_key_pair(algorithm: String) -> napi::Result<AsyncTask<Job<SecretKey>>> {
    let set = ParameterSet::find(&algorithm).map_err(job::to_error)?;
    Ok(start(move || Key::generate(set).map(SecretKey::new)))
}

/// Imports a secret key from its seed, its expanded form, or both. Resolves with null if the parts are
/// inconsistent.
#[napi]
pub fn import_secret_key(
    algorithm: String,
    seed: Option<&[u8]>,
    expanded: Option<&[u8]>,
) -> napi::Result<AsyncTask<Job<Option<SecretKey>>>> {
    let set = ParameterSet::find(&algorithm).map_err(job::to_error)?;
    let seed = seed.map(Bytes::copy_of);
    let expanded = expanded.map(Bytes::copy_of);
    Ok(start(move || {
        let key = match (&seed, &expanded) {
            (Some(seed), None) => Some(Key::from_seed(set, seed)?),
            (Some(seed), Some(expanded)) => {
                let key = Key::from_seed(set, seed)?;
                equal_secrets(&key.expanded_bytes()?, expanded).then_some(key)
            }
            (None, Some(expanded)) => Key::from_expanded(set, expanded)?,
            (None, None) => None,
        };
        Ok(key.map(SecretKey::new))
    }))
}

/// Imports a public key.
#[napi]
pub fn import_public_key(algorithm: String, public_key: &[u8]) -> napi::Result<PublicKey> {
    let set = ParameterSet::find(&algorithm).map_err(job::to_error)?;
    let key = Key::from_public(set, public_key).map_err(job::to_error)?;
    Ok(PublicKey { key: Arc::new(key) })
}

/// A secret key with its public half. Every running job holds its own reference, so that an erased key's memory is
/// overwritten and freed when the last job ends.
#[napi]
pub struct SecretKey {
    key: Mutex<Option<Arc<Key>>>,
}

impl SecretKey {
    fn new(key: Key) -> SecretKey {
        SecretKey {
            key: Mutex::new(Some(Arc::new(key))),
        }
    }

    fn open(&self) -> napi::Result<Arc<Key>> {
        let key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        key.clone()
            .ok_or_else(|| napi::Error::from_reason("the secret key has been erased"))
    }
}

#[napi]
impl SecretKey {
    /// Returns the public half as a key that outlives this one.
    #[napi]
    pub fn public_key(&self) -> napi::Result<PublicKey> {
        let key = self.open()?.public_half().map_err(job::to_error)?;
        Ok(PublicKey { key: Arc::new(key) })
    }

    #[napi]
    pub fn export_expanded(&self) -> napi::Result<Bytes> {
        self.open()?.expanded_bytes().map_err(job::to_error)
    }

    #[napi]
    pub fn export_seed(&self) -> napi::Result<Option<Bytes>> {
        Ok(self.open()?.seed_bytes())
    }

    /// Makes the key unusable.
    #[napi]
    pub fn erase(&self) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    #[napi]
    pub fn sign(&self, message: &[u8], context: &[u8]) -> napi::Result<AsyncTask<Job<Bytes>>> {
        let (key, message, context) = (
            self.open()?,
            Bytes::copy_of(message),
            Bytes::copy_of(context),
        );
        Ok(start(move || key.sign(&message, &context)))
    }

    #[napi]
    pub fn sign_mu(&self, mu: &[u8]) -> napi::Result<AsyncTask<Job<Bytes>>> {
        let (key, mu) = (self.open()?, Bytes::copy_of(mu));
        Ok(start(move || key.sign_mu(&mu)))
    }

    /// Signs without randomness, for known-answer tests only.
    #[napi]
    pub fn sign_deterministic(
        &self,
        message: &[u8],
        context: &[u8],
    ) -> napi::Result<AsyncTask<Job<Bytes>>> {
        let (key, message, context) = (
            self.open()?,
            Bytes::copy_of(message),
            Bytes::copy_of(context),
        );
        Ok(start(move || key.sign_deterministic(&message, &context)))
    }

    #[napi]
    pub fn decapsulate(&self, ciphertext: &[u8]) -> napi::Result<AsyncTask<Job<Bytes>>> {
        let (key, ciphertext) = (self.open()?, Bytes::copy_of(ciphertext));
        Ok(start(move || key.decapsulate(&ciphertext)))
    }
}

/// A public key.
#[napi]
pub struct PublicKey {
    key: Arc<Key>,
}

#[napi]
impl PublicKey {
    #[napi]
    pub fn export(&self) -> napi::Result<Bytes> {
        self.key.public_bytes().map_err(job::to_error)
    }

    #[napi]
    pub fn verify(&self, message: &[u8], signature: &[u8], context: &[u8]) -> AsyncTask<Job<bool>> {
        let key = Arc::clone(&self.key);
        let [message, signature, context] = [message, signature, context].map(Bytes::copy_of);
        start(move || key.verify(&message, &signature, &context))
    }

    /// Resolves with the ciphertext and the shared secret.
    #[napi]
    pub fn encapsulate(&self) -> AsyncTask<Job<Vec<Bytes>>> {
        let key = Arc::clone(&self.key);
        start(move || {
            let (ciphertext, shared_secret) = key.encapsulate()?;
            Ok(vec![ciphertext, shared_secret])
        })
    }
}
