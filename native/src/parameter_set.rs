//! The parameter sets of FIPS 204 and FIPS 203.

use std::ffi::c_int;

use aws_lc_sys as aws_lc;

use crate::evp::{Failure, Result};

/// The families of FIPS 204 and FIPS 203.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Family {
    MlDsa,
    MlKem,
}

/// A parameter set; sizes are in bytes.
pub struct ParameterSet {
    pub name: &'static str,
    pub family: Family,
    /// AWS-LC's numeric ID of the set.
    pub nid: c_int,
    pub public_key_bytes: usize,
    pub secret_key_bytes: usize,
    pub seed_bytes: usize,
    /// Length of a signature or a ciphertext.
    pub output_bytes: usize,
    /// ML-DSA only.
    pub sign_internal: Option<SignInternal>,
}

/// FIPS 204, algorithm 7. The randomness has 32 bytes.
pub type SignInternal = unsafe extern "C" fn(
    secret_key: *const u8,
    signature: *mut u8,
    signature_len: *mut usize,
    message: *const u8,
    message_len: usize,
    prefix: *const u8,
    prefix_len: usize,
    randomness: *const u8,
) -> c_int;

macro_rules! declare_sign_internal {
    ($($name:ident = $symbol:literal;)*) => {
        unsafe extern "C" {
            $(#[link_name = $symbol]
            fn $name(
                secret_key: *const u8,
                signature: *mut u8,
                signature_len: *mut usize,
                message: *const u8,
                message_len: usize,
                prefix: *const u8,
                prefix_len: usize,
                randomness: *const u8,
            ) -> c_int;)*
        }
    };
}

// The EVP interface cannot sign without randomness. AWS-LC exports these functions for its own known-answer tests, but
// its public headers do not declare them. The symbols contain the version, so a different version does not link.
declare_sign_internal! {
    ml_dsa_44_sign_internal = "aws_lc_0_47_0_ml_dsa_44_sign_internal";
    ml_dsa_65_sign_internal = "aws_lc_0_47_0_ml_dsa_65_sign_internal";
    ml_dsa_87_sign_internal = "aws_lc_0_47_0_ml_dsa_87_sign_internal";
}

const fn ml_dsa(
    name: &'static str,
    nid: c_int,
    sizes: [usize; 3],
    sign_internal: SignInternal,
) -> ParameterSet {
    parameter_set(Family::MlDsa, name, nid, sizes, Some(sign_internal))
}

const fn ml_kem(name: &'static str, nid: c_int, sizes: [usize; 3]) -> ParameterSet {
    parameter_set(Family::MlKem, name, nid, sizes, None)
}

const fn parameter_set(
    family: Family,
    name: &'static str,
    nid: c_int,
    [public_key_bytes, secret_key_bytes, output_bytes]: [usize; 3],
    sign_internal: Option<SignInternal>,
) -> ParameterSet {
    let seed_bytes = match family {
        Family::MlDsa => 32,
        Family::MlKem => 64,
    };
    ParameterSet {
        name,
        family,
        nid,
        public_key_bytes,
        secret_key_bytes,
        seed_bytes,
        output_bytes,
        sign_internal,
    }
}

/// FIPS 204, table 2, and FIPS 203, table 3.
static PARAMETER_SETS: [ParameterSet; 6] = [
    ml_dsa(
        "ML-DSA-44",
        aws_lc::NID_MLDSA44,
        [1312, 2560, 2420],
        ml_dsa_44_sign_internal,
    ),
    ml_dsa(
        "ML-DSA-65",
        aws_lc::NID_MLDSA65,
        [1952, 4032, 3309],
        ml_dsa_65_sign_internal,
    ),
    ml_dsa(
        "ML-DSA-87",
        aws_lc::NID_MLDSA87,
        [2592, 4896, 4627],
        ml_dsa_87_sign_internal,
    ),
    ml_kem("ML-KEM-512", aws_lc::NID_MLKEM512, [800, 1632, 768]),
    ml_kem("ML-KEM-768", aws_lc::NID_MLKEM768, [1184, 2400, 1088]),
    ml_kem("ML-KEM-1024", aws_lc::NID_MLKEM1024, [1568, 3168, 1568]),
];

impl ParameterSet {
    pub fn find(name: &str) -> Result<&'static ParameterSet> {
        let found = PARAMETER_SETS.iter().find(|set| set.name == name);
        found.ok_or_else(|| Failure(format!("{name} is not a parameter set of this library")))
    }
}
