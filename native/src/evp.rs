//! Shared by all AWS-LC calls: contexts, errors, and bytes that are overwritten after use.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use aws_lc_sys as aws_lc;

use crate::key::Key;
use crate::parameter_set::{Family, ParameterSet};

const MAX_CONTEXT_BYTES: usize = 255;

/// A failure, described for developers: callers validate their input first.
#[derive(Debug)]
pub struct Failure(pub String);

pub type Result<T> = std::result::Result<T, Failure>;

/// Bytes that are overwritten on drop.
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    pub fn zeros(length: usize) -> Bytes {
        Bytes(vec![0; length])
    }

    pub fn copy_of(bytes: &[u8]) -> Bytes {
        Bytes(bytes.to_vec())
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: the vector owns this many initialised bytes.
        unsafe { aws_lc::OPENSSL_cleanse(self.0.as_mut_ptr().cast(), self.0.len()) }
    }
}

/// The context of one key operation or of key generation.
pub struct Context(pub NonNull<aws_lc::EVP_PKEY_CTX>);

impl Context {
    pub fn for_key(key: &Key) -> Result<Context> {
        // SAFETY: the key is valid; the context holds its own reference.
        let context = unsafe { aws_lc::EVP_PKEY_CTX_new(key.pkey.as_ptr(), ptr::null_mut()) };
        NonNull::new(context)
            .map(Context)
            .ok_or_else(|| failure(key.set, "start"))
    }

    pub fn for_key_type(set: &ParameterSet) -> Result<Context> {
        let (key_type, set_parameters): (_, unsafe extern "C" fn(_, _) -> _) = match set.family {
            Family::MlDsa => (
                aws_lc::EVP_PKEY_PQDSA,
                aws_lc::EVP_PKEY_CTX_pqdsa_set_params,
            ),
            Family::MlKem => (aws_lc::EVP_PKEY_KEM, aws_lc::EVP_PKEY_CTX_kem_set_params),
        };
        // SAFETY: takes plain values.
        let context = unsafe { aws_lc::EVP_PKEY_CTX_new_id(key_type, ptr::null_mut()) };
        let context = NonNull::new(context)
            .map(Context)
            .ok_or_else(|| failure(set, "start"))?;
        // SAFETY: the context is valid.
        check(set, "start", unsafe {
            aws_lc::EVP_PKEY_keygen_init(context.0.as_ptr())
                & set_parameters(context.0.as_ptr(), set.nid)
        })?;
        Ok(context)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: only this value frees the context.
        unsafe { aws_lc::EVP_PKEY_CTX_free(self.0.as_ptr()) }
    }
}

pub type DigestInit = unsafe extern "C" fn(
    *mut aws_lc::EVP_MD_CTX,
    *mut *mut aws_lc::EVP_PKEY_CTX,
    *const aws_lc::EVP_MD,
    *mut aws_lc::ENGINE,
    *mut aws_lc::EVP_PKEY,
) -> c_int;

/// A context that signs or verifies one message.
pub struct DigestContext(pub NonNull<aws_lc::EVP_MD_CTX>);

impl DigestContext {
    /// `context` is the context of FIPS 204, section 5.2.
    pub fn new(key: &Key, context: &[u8], init: DigestInit) -> Result<DigestContext> {
        check_context(key.set, context)?;
        // SAFETY: takes no arguments.
        let digest = NonNull::new(unsafe { aws_lc::EVP_MD_CTX_new() })
            .map(DigestContext)
            .ok_or_else(|| failure(key.set, "start"))?;
        let mut inner = ptr::null_mut();
        // SAFETY: the digest context and the key are valid. ML-DSA takes no digest, so it is null. AWS-LC writes a pointer
        // to `inner` that lives as long as the digest context.
        check(key.set, "start", unsafe {
            init(
                digest.0.as_ptr(),
                &mut inner,
                ptr::null(),
                ptr::null_mut(),
                key.pkey.as_ptr(),
            )
        })?;
        // SAFETY: `inner` was just written, and `context` is valid for its length.
        check(key.set, "set a context", unsafe {
            aws_lc::EVP_PKEY_CTX_set1_signature_context_string(
                inner,
                context.as_ptr(),
                context.len(),
            )
        })?;
        Ok(digest)
    }
}

impl Drop for DigestContext {
    fn drop(&mut self) {
        // SAFETY: only this value frees the context.
        unsafe { aws_lc::EVP_MD_CTX_free(self.0.as_ptr()) }
    }
}

/// Converts the result of an AWS-LC function, 1 for success, to a `Result`.
pub fn check(set: &ParameterSet, what: &str, code: c_int) -> Result<()> {
    if code == 1 {
        return Ok(());
    }
    forget_errors();
    Err(failure(set, what))
}

pub fn check_length(set: &ParameterSet, what: &str, bytes: &[u8], expected: usize) -> Result<()> {
    if bytes.len() == expected {
        return Ok(());
    }
    let (name, length) = (set.name, bytes.len());
    Err(Failure(format!(
        "the {name} {what} has {length} bytes instead of {expected}"
    )))
}

pub fn check_context(set: &ParameterSet, context: &[u8]) -> Result<()> {
    if context.len() <= MAX_CONTEXT_BYTES {
        return Ok(());
    }
    Err(failure(set, "accept a context that long"))
}

pub fn failure(set: &ParameterSet, what: &str) -> Failure {
    Failure(format!("AWS-LC cannot {what} with {}", set.name))
}

/// Clears the thread's AWS-LC error queue, which later calls on the thread would otherwise find.
pub fn forget_errors() {
    // SAFETY: takes no arguments.
    unsafe { aws_lc::ERR_clear_error() }
}

/// Compares secrets in constant time.
pub fn equal_secrets(left: &[u8], right: &[u8]) -> bool {
    // SAFETY: both are valid for their common length.
    left.len() == right.len()
        && unsafe { aws_lc::CRYPTO_memcmp(left.as_ptr().cast(), right.as_ptr().cast(), left.len()) }
            == 0
}
