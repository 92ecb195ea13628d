//! Reports which AWS-LC code computes ML-DSA and ML-KEM on this processor.
//!
//! AWS-LC contains portable code and code for one instruction set. At run time, each function chooses by the processor
//! flags, which are read once. The variable OPENSSL_ia32cap can switch flags off. This module reads the same flags. It
//! also refers to one function of the fast code, so that a build without that code fails to load instead of being slow.

/// Returns "AVX2", "NEON" or "portable".
pub fn path() -> &'static str {
    fast_path().unwrap_or("portable")
}

#[cfg(all(target_arch = "x86_64", any(target_os = "linux", target_os = "macos")))]
fn fast_path() -> Option<&'static str> {
    unsafe extern "C" {
        #[link_name = "aws_lc_0_47_0_OPENSSL_ia32cap_P"]
        static CPU_FLAGS: [u32; 4];
        #[link_name = "aws_lc_0_47_0_mldsa_ntt_avx2_asm"]
        fn ntt_avx2(coefficients: *mut i32, constants: *const i32);
    }
    std::hint::black_box(ntt_avx2 as unsafe extern "C" fn(_, _));
    // SAFETY: takes no arguments; fills the flags unless a library constructor has done so.
    unsafe { aws_lc_sys::CRYPTO_library_init() };
    // SAFETY: nothing writes the flags after the call above. Word 2 is EBX of CPUID leaf 7, whose bit 5 is AVX2.
    let has_avx2 = unsafe { CPU_FLAGS[2] } & (1 << 5) != 0;
    has_avx2.then_some("AVX2")
}

#[cfg(all(target_arch = "aarch64", any(target_os = "linux", target_os = "macos")))]
fn fast_path() -> Option<&'static str> {
    unsafe extern "C" {
        #[link_name = "aws_lc_0_47_0_mldsa_ntt_aarch64_asm"]
        fn ntt_neon(coefficients: *mut i32, constants_123456: *const i32, constants_78: *const i32);
    }
    std::hint::black_box(ntt_neon as unsafe extern "C" fn(_, _, _));
    // Every processor of this architecture has NEON, which Rust's targets require.
    Some("NEON")
}

/// AWS-LC has fast code only for Linux and macOS.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    any(target_os = "linux", target_os = "macos")
)))]
fn fast_path() -> Option<&'static str> {
    None
}
