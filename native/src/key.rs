//! ML-DSA and ML-KEM keys on top of AWS-LC's EVP interface.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use aws_lc_sys as aws_lc;

use crate::evp::{
    Bytes, Context, DigestContext, Result, check, check_context, check_length, failure,
    forget_errors,
};
use crate::parameter_set::{Family, ParameterSet};

const MU_BYTES: usize = 64;
const SHARED_SECRET_BYTES: usize = 32;

/// A secret or a public key. A secret key includes its public half.
pub struct Key {
    /// A valid reference that this value owns.
    pub pkey: NonNull<aws_lc::EVP_PKEY>,
    pub set: &'static ParameterSet,
}

// SAFETY: AWS-LC counts references to an EVP_PKEY atomically, and functions that take it do not change it after it is
// created. Threads may therefore share it, and any thread may free it.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: `pkey` is a valid reference that only this value frees. AWS-LC overwrites all memory that it frees.
        unsafe { aws_lc::EVP_PKEY_free(self.pkey.as_ptr()) }
    }
}

impl Key {
    /// Generates a key pair from fresh randomness (FIPS 204, algorithm 1; FIPS 203, algorithm 19).
    pub fn generate(set: &'static ParameterSet) -> Result<Key> {
        let context = Context::for_key_type(set)?;
        let mut pkey = ptr::null_mut();
        // SAFETY: the context is valid and AWS-LC writes a new reference to `pkey`.
        check(set, "generate a key", unsafe {
            aws_lc::EVP_PKEY_keygen(context.0.as_ptr(), &mut pkey)
        })?;
        Key::own(set, pkey).ok_or_else(|| failure(set, "generate a key"))
    }

    /// Derives a key pair from its seed (FIPS 204, algorithm 6; FIPS 203, algorithm 16).
    pub fn from_seed(set: &'static ParameterSet, seed: &[u8]) -> Result<Key> {
        check_length(set, "seed", seed, set.seed_bytes)?;
        let mut pkey = ptr::null_mut();
        if set.family == Family::MlDsa {
            // SAFETY: `seed` is valid for its length, by which AWS-LC recognizes a seed.
            pkey = unsafe {
                aws_lc::EVP_PKEY_pqdsa_new_raw_private_key(set.nid, seed.as_ptr(), seed.len())
            };
        } else {
            let context = Context::for_key_type(set)?;
            let mut seed_bytes = seed.len();
            // SAFETY: the context is valid, `seed` is valid for `seed_bytes`, and AWS-LC writes a new reference to `pkey`.
            check(set, "derive a key", unsafe {
                aws_lc::EVP_PKEY_keygen_deterministic(
                    context.0.as_ptr(),
                    &mut pkey,
                    seed.as_ptr(),
                    &mut seed_bytes,
                )
            })?;
        }
        Key::own(set, pkey).ok_or_else(|| failure(set, "derive a key"))
    }

    /// Parses an expanded secret key. Returns None if its parts are out of range or inconsistent.
    ///
    /// For ML-DSA, AWS-LC derives the public key again and compares t0 and tr. For ML-KEM, it runs the checks of
    /// FIPS 203, sections 7.2 and 7.3, and the pair-wise check of section 7.1.
    pub fn from_expanded(set: &'static ParameterSet, expanded: &[u8]) -> Result<Option<Key>> {
        check_length(set, "expanded key", expanded, set.secret_key_bytes)?;
        if set.family == Family::MlDsa {
            // SAFETY: `expanded` is valid for its length, by which AWS-LC recognizes an expanded key.
            let pkey = unsafe {
                aws_lc::EVP_PKEY_pqdsa_new_raw_private_key(
                    set.nid,
                    expanded.as_ptr(),
                    expanded.len(),
                )
            };
            return Ok(Key::own(set, pkey));
        }
        // FIPS 203, algorithm 16, line 3: dk = dkPKE ‖ ek ‖ H(ek) ‖ z; the last two have 32 bytes each.
        let public_key_end = expanded.len() - 64;
        let public_key = &expanded[public_key_end - set.public_key_bytes..public_key_end];
        // SAFETY: both halves are valid for their lengths.
        let pkey = unsafe {
            aws_lc::EVP_PKEY_kem_new_raw_key(
                set.nid,
                public_key.as_ptr(),
                public_key.len(),
                expanded.as_ptr(),
                expanded.len(),
            )
        };
        let key = Key::own(set, pkey).ok_or_else(|| failure(set, "parse a secret key"))?;
        // SAFETY: `key` holds a valid reference.
        let is_consistent = unsafe { aws_lc::EVP_PKEY_kem_check_key(key.pkey.as_ptr()) } == 1;
        forget_errors();
        Ok(is_consistent.then_some(key))
    }

    /// Parses a public key. The caller has checked the moduli of an ML-KEM key.
    pub fn from_public(set: &'static ParameterSet, public_key: &[u8]) -> Result<Key> {
        check_length(set, "public key", public_key, set.public_key_bytes)?;
        let parse = match set.family {
            Family::MlDsa => aws_lc::EVP_PKEY_pqdsa_new_raw_public_key,
            Family::MlKem => aws_lc::EVP_PKEY_kem_new_raw_public_key,
        };
        // SAFETY: `public_key` is valid for its length.
        let pkey = unsafe { parse(set.nid, public_key.as_ptr(), public_key.len()) };
        Key::own(set, pkey).ok_or_else(|| failure(set, "parse a public key"))
    }

    /// Returns the public half as a separate key.
    pub fn public_half(&self) -> Result<Key> {
        Key::from_public(self.set, &self.public_bytes()?)
    }

    pub fn public_bytes(&self) -> Result<Bytes> {
        self.export(
            aws_lc::EVP_PKEY_get_raw_public_key,
            self.set.public_key_bytes,
        )
        .ok_or_else(|| failure(self.set, "export a public key"))
    }

    /// Returns the expanded secret key.
    pub fn expanded_bytes(&self) -> Result<Bytes> {
        self.export(
            aws_lc::EVP_PKEY_get_raw_private_key,
            self.set.secret_key_bytes,
        )
        .ok_or_else(|| failure(self.set, "export a secret key"))
    }

    /// Returns the seed, or None for a key that was imported without one.
    pub fn seed_bytes(&self) -> Option<Bytes> {
        self.export(aws_lc::EVP_PKEY_get_private_seed, self.set.seed_bytes)
    }

    /// Signs a message with fresh randomness (FIPS 204, algorithm 2).
    pub fn sign(&self, message: &[u8], context: &[u8]) -> Result<Bytes> {
        self.check_family(Family::MlDsa)?;
        let digest = DigestContext::new(self, context, aws_lc::EVP_DigestSignInit)?;
        let mut signature = Bytes::zeros(self.set.output_bytes);
        let mut length = signature.len();
        // SAFETY: the context is valid, `signature` has `length` writable bytes and `message` is valid for its length.
        check(self.set, "sign", unsafe {
            aws_lc::EVP_DigestSign(
                digest.0.as_ptr(),
                signature.0.as_mut_ptr(),
                &mut length,
                message.as_ptr(),
                message.len(),
            )
        })?;
        Ok(signature)
    }

    /// Signs μ with fresh randomness (FIPS 204, algorithm 7 from line 7 on).
    pub fn sign_mu(&self, mu: &[u8]) -> Result<Bytes> {
        self.check_family(Family::MlDsa)?;
        check_length(self.set, "mu", mu, MU_BYTES)?;
        let context = Context::for_key(self)?;
        let mut signature = Bytes::zeros(self.set.output_bytes);
        let mut length = signature.len();
        // SAFETY: the context is valid. For an ML-DSA key, AWS-LC takes the "digest" as μ; it is valid for its length, and
        // `signature` has `length` writable bytes.
        check(self.set, "sign mu", unsafe {
            aws_lc::EVP_PKEY_sign_init(context.0.as_ptr())
                & aws_lc::EVP_PKEY_sign(
                    context.0.as_ptr(),
                    signature.0.as_mut_ptr(),
                    &mut length,
                    mu.as_ptr(),
                    mu.len(),
                )
        })?;
        Ok(signature)
    }

    /// Signs without randomness (FIPS 204, section 3.4), for known-answer tests only.
    pub fn sign_deterministic(&self, message: &[u8], context: &[u8]) -> Result<Bytes> {
        let Some(sign_internal) = self.set.sign_internal else {
            return Err(failure(self.set, "sign"));
        };
        check_context(self.set, context)?;
        let secret_key = self.expanded_bytes()?;
        // FIPS 204, algorithm 2, line 10: M′ = 0 ‖ |ctx| ‖ ctx ‖ M.
        let mut prefix = vec![0, context.len() as u8];
        prefix.extend_from_slice(context);
        let mut signature = Bytes::zeros(self.set.output_bytes);
        let mut length = signature.len();
        // SAFETY: `secret_key` and `signature` have the lengths of the parameter set, the randomness has 32 bytes, and the
        // other slices are valid for the lengths next to them.
        check(self.set, "sign", unsafe {
            sign_internal(
                secret_key.as_ptr(),
                signature.0.as_mut_ptr(),
                &mut length,
                message.as_ptr(),
                message.len(),
                prefix.as_ptr(),
                prefix.len(),
                [0u8; 32].as_ptr(),
            )
        })?;
        Ok(signature)
    }

    /// Verifies a signature (FIPS 204, algorithm 3).
    pub fn verify(&self, message: &[u8], signature: &[u8], context: &[u8]) -> Result<bool> {
        self.check_family(Family::MlDsa)?;
        let digest = DigestContext::new(self, context, aws_lc::EVP_DigestVerifyInit)?;
        // SAFETY: the context is valid and both slices are valid for their lengths.
        let is_valid = unsafe {
            aws_lc::EVP_DigestVerify(
                digest.0.as_ptr(),
                signature.as_ptr(),
                signature.len(),
                message.as_ptr(),
                message.len(),
            )
        } == 1;
        forget_errors();
        Ok(is_valid)
    }

    /// Returns a ciphertext and its shared secret (FIPS 203, algorithm 20).
    pub fn encapsulate(&self) -> Result<(Bytes, Bytes)> {
        self.check_family(Family::MlKem)?;
        let context = Context::for_key(self)?;
        let mut ciphertext = Bytes::zeros(self.set.output_bytes);
        let mut shared_secret = Bytes::zeros(SHARED_SECRET_BYTES);
        let mut ciphertext_bytes = ciphertext.len();
        let mut shared_secret_bytes = shared_secret.len();
        // SAFETY: the context is valid, and both buffers have as many writable bytes as their lengths.
        check(self.set, "encapsulate", unsafe {
            aws_lc::EVP_PKEY_encapsulate(
                context.0.as_ptr(),
                ciphertext.0.as_mut_ptr(),
                &mut ciphertext_bytes,
                shared_secret.0.as_mut_ptr(),
                &mut shared_secret_bytes,
            )
        })?;
        Ok((ciphertext, shared_secret))
    }

    /// Returns the shared secret of a ciphertext; for a wrong one, a different secret (FIPS 203, algorithm 21).
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Result<Bytes> {
        self.check_family(Family::MlKem)?;
        let context = Context::for_key(self)?;
        let mut shared_secret = Bytes::zeros(SHARED_SECRET_BYTES);
        let mut shared_secret_bytes = shared_secret.len();
        // SAFETY: the context is valid, `ciphertext` is valid for its length, which AWS-LC checks, and `shared_secret` has
        // `shared_secret_bytes` writable bytes.
        check(self.set, "decapsulate", unsafe {
            aws_lc::EVP_PKEY_decapsulate(
                context.0.as_ptr(),
                shared_secret.0.as_mut_ptr(),
                &mut shared_secret_bytes,
                ciphertext.as_ptr(),
                ciphertext.len(),
            )
        })?;
        Ok(shared_secret)
    }

    /// Takes ownership of a reference that AWS-LC returned. Returns None for null.
    fn own(set: &'static ParameterSet, pkey: *mut aws_lc::EVP_PKEY) -> Option<Key> {
        let key = NonNull::new(pkey).map(|pkey| Key { pkey, set });
        if key.is_none() {
            forget_errors();
        }
        key
    }

    fn export(
        &self,
        read: unsafe extern "C" fn(*const aws_lc::EVP_PKEY, *mut u8, *mut usize) -> c_int,
        length: usize,
    ) -> Option<Bytes> {
        let mut bytes = Bytes::zeros(length);
        let mut written = length;
        // SAFETY: the key is valid and `bytes` has `written` writable bytes.
        let is_ok = unsafe { read(self.pkey.as_ptr(), bytes.0.as_mut_ptr(), &mut written) } == 1;
        if !is_ok {
            forget_errors();
        }
        (is_ok && written == length).then_some(bytes)
    }

    fn check_family(&self, family: Family) -> Result<()> {
        if self.set.family == family {
            return Ok(());
        }
        Err(failure(self.set, "do this"))
    }
}
