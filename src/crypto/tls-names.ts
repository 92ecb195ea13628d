/** Names of TLS code points, from the IANA registries (RFC 8446, section 11; RFC 8447; RFC 10024). */

/** TLS Supported Groups. */
const groups: Readonly<Record<number, string>> = {
  22: "secp256k1",
  23: "secp256r1",
  24: "secp384r1",
  25: "secp521r1",
  26: "brainpoolP256r1",
  27: "brainpoolP384r1",
  28: "brainpoolP512r1",
  29: "x25519",
  30: "x448",
  31: "brainpoolP256r1tls13",
  32: "brainpoolP384r1tls13",
  33: "brainpoolP512r1tls13",
  41: "curveSM2",
  256: "ffdhe2048",
  257: "ffdhe3072",
  258: "ffdhe4096",
  259: "ffdhe6144",
  260: "ffdhe8192",
  512: "MLKEM512",
  513: "MLKEM768",
  514: "MLKEM1024",
  4587: "SecP256r1MLKEM768",
  4588: "X25519MLKEM768",
  4589: "SecP384r1MLKEM1024",
  4590: "curveSM2MLKEM768",
};

/** TLS SignatureScheme. */
const signatureAlgorithms: Readonly<Record<number, string>> = {
  513: "rsa_pkcs1_sha1",
  515: "ecdsa_sha1",
  1025: "rsa_pkcs1_sha256",
  1027: "ecdsa_secp256r1_sha256",
  1056: "rsa_pkcs1_sha256_legacy",
  1281: "rsa_pkcs1_sha384",
  1283: "ecdsa_secp384r1_sha384",
  1312: "rsa_pkcs1_sha384_legacy",
  1537: "rsa_pkcs1_sha512",
  1539: "ecdsa_secp521r1_sha512",
  1568: "rsa_pkcs1_sha512_legacy",
  1800: "sm2sig_sm3",
  2052: "rsa_pss_rsae_sha256",
  2053: "rsa_pss_rsae_sha384",
  2054: "rsa_pss_rsae_sha512",
  2055: "ed25519",
  2056: "ed448",
  2057: "rsa_pss_pss_sha256",
  2058: "rsa_pss_pss_sha384",
  2059: "rsa_pss_pss_sha512",
  2074: "ecdsa_brainpoolP256r1tls13_sha256",
  2075: "ecdsa_brainpoolP384r1tls13_sha384",
  2076: "ecdsa_brainpoolP512r1tls13_sha512",
  2308: "mldsa44",
  2309: "mldsa65",
  2310: "mldsa87",
};

/** Names of groups in OpenSSL and BoringSSL that differ from IANA's. */
const otherNames: Readonly<Record<string, string>> = {
  X25519: "x25519",
  X448: "x448",
  "P-256": "secp256r1",
  prime256v1: "secp256r1",
  "P-384": "secp384r1",
  "P-521": "secp521r1",
};

export function nameGroup(codePoint: number): string {
  return groups[codePoint] ?? formatCodePoint(codePoint);
}

export function nameSignatureAlgorithm(codePoint: number): string {
  return signatureAlgorithms[codePoint] ?? formatCodePoint(codePoint);
}

/** Converts a TLS library's name of a group to IANA's. */
export function normalizeGroup(name: string): string {
  return otherNames[name] ?? name;
}

/** Returns whether a group combines a classical key exchange with ML-KEM (RFC 10024). */
export function isHybridGroup(name: string): boolean {
  return /.MLKEM\d+$/.test(name);
}

function formatCodePoint(codePoint: number): string {
  return `0x${codePoint.toString(16).padStart(4, "0")}`;
}
