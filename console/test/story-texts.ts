/**
 * The visible text of each story that was played to its end: one line per step, with its sentence, and in
 * brackets who checked what.
 */
export const storyTexts: Readonly<Record<string, string>> = {
  sign: `
The signature has 3,309 bytes, the public key 1,952 bytes.
Both sides find the signature valid. [server: valid, browser: valid]
With one bit of byte 1,000 changed, neither side finds it valid. [server: not valid, browser: not valid]
The signature is unchanged, but it does not match this message. [server: not valid, browser: not valid]
The server refuses the call: LENGTH_INVALID.
`,
  "key-exchange": `
The public key has 1,184 bytes. It took … ms, with @noble/post-quantum.
The ciphertext has 1,088 bytes, the secret in it 32 bytes.
Both sides have the same secret. [browser: equal]
Your browser gets a different secret, and no error. [browser: different]
`,
  tokens: `
The token has … characters; its signature has 3,309 bytes, before base64url encoding.
Both sides find the token valid. [browser: equal, browser: valid, server: valid]
Without it: TOKEN_MISSING. With it, the server identifies you as ada.
Neither side accepts it. A call with it is refused: TOKEN_SIGNATURE_INVALID. [browser: not valid, server: not valid]
`,
  keys: `
The log has … entries. New ones appear in the diagram when they are written.
The key is ACTIVE. Its ID is key-….
While it is disabled, signing is refused with KEY_STATE_INVALID. Now it is ACTIVE.
Both sides find the signature of 3,309 bytes valid. [server: valid, browser: valid]
The old key is ROTATED: signing is refused with KEY_STATE_INVALID, and its old signature is still valid. [server: valid]
The key was DESTROY_SCHEDULED, and verification was refused with KEY_STATE_INVALID. Restored and enabled, it is ROTATED again.
The key is DESTROYED. Verification is refused with KEY_STATE_INVALID.
The server read … entries and finds the log unchanged. [server: valid, browser: valid]
`,
  encryption: `
The key exists; its public key has 1,216 bytes.
14 bytes became 1,167 bytes.
The server returns “blood type: 0+”. [browser: equal]
Each is refused with the same words: DECRYPTION_FAILED. [browser: equal]
The data is now under key-….
The old ciphertext is lost: KEY_STATE_INVALID. The new one still decrypts. [server: decrypts]
`,
  devices: `
The device's public key has 1,312 bytes, the vendor's 2,592 bytes.
REGISTERED: the device ID is device-…. [browser: equal, browser: none]
The server authenticated the device and issued a token. [server: valid, browser: valid]
Not authenticated: CHALLENGE_USED. [server: refused]
Not authenticated: SIGNATURE_INVALID. [server: not valid, browser: not valid]
The token has … characters, for device-…. [browser: equal, browser: valid]
The server accepts reading 1: 17 bytes, with a signature of 2,420 bytes. [server: valid, browser: valid]
The server rejects it: SIGNATURE_INVALID. [server: not valid, browser: not valid]
The server rejects reading 1 again: SEQUENCE_OLD. [browser: valid, server: old]
FIRMWARE_ACCEPTED: 4,096 bytes, with a signature of 4,627 bytes. [browser: equal, browser: valid, server: accepted]
FIRMWARE_REJECTED: VERSION_ROLLBACK. [browser: equal, browser: valid, server: VERSION_ROLLBACK]
FIRMWARE_REJECTED: VENDOR_MISMATCH. [browser: valid, browser: equal, browser: not valid, server: VENDOR_MISMATCH]
FIRMWARE_REJECTED: SIGNATURE_INVALID. [browser: equal, browser: not valid, server: SIGNATURE_INVALID]
The device reported version 1, and after the update version 2.
The list shows version 2, and before it version 1. [browser: equal]
`,
  tunnel: `
A key to encapsulate to, 1,568 bytes, and an identity, 1,952 bytes. [browser: valid]
Your address is 10.8.…, in tunnel-…. [browser: none]
Both ends have the same key, and the gateway is authentic. [browser: equal, browser: valid, browser: equal, server: valid]
20 bytes became a packet of 48 bytes, which the gateway opened. [server: valid, browser: equal]
Your browser opened a packet of 43 bytes. [browser: valid]
The gateway refuses it: PACKET_REPLAYED.
Neither end opens it. The gateway answers PACKET_INVALID. [browser: not valid, server: not valid]
Key 2 is in use. A packet under the previous key is refused: PACKET_INVALID. [browser: equal, browser: valid, browser: equal, browser: does not open, browser: opens, server: opens]
She shares one key with the gateway and another with you, and could read everything.
Your browser accepts the key in none of her attempts. [browser: different, browser: valid, browser: equal, browser: equal, browser: not valid, server: not valid, browser: equal, browser: equal, browser: not valid, server: not valid, browser: equal, browser: valid]
The tunnel is REMOVED. A packet for it is refused: TUNNEL_NOT_FOUND.
`,
  governance: `
Your key is in your browser, Grace's in the key service, Alan's in the key service.
The wallet is multisig-…. It needs 2 of 3 signatures. [browser: equal]
It is proposal-…, and accepts signatures for one hour. [browser: equal]
The server refuses: THRESHOLD_NOT_REACHED.
Under his own address: SIGNER_UNKNOWN. Under Grace's address: SIGNATURE_INVALID. [browser: not valid, server: not valid]
The proposal has 1 of 2 signatures. Yours counts only once: ALREADY_SIGNED. [server: valid, browser: valid]
The proposal has 2 of 2 signatures. [server: valid, browser: valid]
The proposal is EXECUTED. A second attempt is refused: PROPOSAL_EXECUTED.
`,
  chain: `
The validator is registered; its public key has 1,952 bytes. [browser: equal]
The chain has … blocks. You see it from block … on. New blocks appear when they are added.
Blocks … were added and arrived in the stream. [browser: equal, browser: valid, browser: equal, browser: valid, browser: equal, browser: valid]
The server checked … blocks, and your browser the … that it has. All are valid. [server: valid, browser: valid, browser: valid]
You changed block …: in your copy, block … and the 2 after it turned red. Block …: its content does not match its hash. The server's chain holds. [browser: not valid, server: valid]
The server refuses the call: VALIDATOR_NOT_FOUND.
`,
  log: `
6 blocks were added. The log has … entries.
The log has … entries, and its root is signed with ML-DSA-65. [browser: valid]
With … hashes, your browser gets from leaf 1 to the signed root. [browser: equal]
The computed root differs from the signed one: every hash above the flipped bit changes. [browser: different]
`,
  provenance: `
The token exists, and its creator signed it with 3,309 bytes. [browser: equal, browser: valid, browser: equal]
The token went from its creator to a second owner and then to a third, 0x….
The server refuses the call: OWNER_MISMATCH.
Over 2 transfers, from the creator to the current owner, no step is missing. [server: valid, browser: unbroken, browser: valid]
With one letter changed, neither side finds the signature valid. The server says: SIGNATURE. [server: not valid, browser: not valid]
The forgery is signed too, but not by the creator: with the creator's key, neither side finds it valid. [server: valid, browser: valid, server: not valid, browser: not valid]
`,
  contracts: `
The code's hash is signed with 3,309 bytes; your browser finds both valid. [browser: equal, browser: valid]
The changed code has a different hash, which the signature does not cover. [browser: different, browser: not valid]
The ECDSA signature has … bytes, the ML-DSA-65 signature 3,309 bytes.
Both sides find both signatures valid. [server: valid, browser: valid, server: valid, browser: valid]
Both sides find the ECDSA half invalid and the other half valid. Together, they are not valid. [server: not valid, browser: not valid, server: valid, browser: valid, server: not valid, browser: not valid]
The signature's bytes differ, and both sides find it valid. [server: valid, browser: valid, server: valid, browser: valid]
One signature of … bytes: both sides find both halves valid. [server: valid, browser: valid, server: valid, browser: valid]
Both sides find the ML-DSA-65 half invalid and the other half valid. Together, they are not valid. [server: valid, browser: valid, server: not valid, browser: not valid, server: not valid, browser: not valid]
Neither side accepts the half as an ML-DSA-65 signature of the message. [server: valid, browser: valid, server: not valid, browser: not valid]
The server refuses the call: LENGTH_INVALID.
`,
  wallets: `
The wallet has an address of 20 bytes for a public key of 1,952 bytes. [browser: equal]
Both sides find the signature of 3,309 bytes valid for the wallet's key. [server: valid, browser: valid, browser: equal]
Neither side finds the signature valid for the altered transaction. [server: not valid, browser: not valid]
The thief's signature is valid, but for a different address. “Valid” alone does not protect you. [server: valid, browser: valid, server: different, browser: different]
Both sides always find it valid. Your browser's list accepts it only once. [server: valid, server: valid, browser: accepted, browser: seen before]
The server refuses the call: WALLET_NOT_FOUND.
All 16 fields are public. None contains the private key. [browser: nothing private]
`,
};

/** Masks values that differ from run to run. */
export function maskVarying(text: string): string {
  return text
    .replace(/0x[0-9a-f]*…[0-9a-f]*/g, "0x…")
    .replace(/\b(\w+)-[0-9a-f]{8}-[0-9a-f-]{27}/g, "$1-…")
    .replace(/\b10\.8\.[\d.]*\d/g, "10.8.…")
    .replace(/\d+(?:\.\d+)?\u00a0ms/g, "… ms")
    .replace(
      /(log has|read|With|chain has|from block|checked|browser the|token has|ECDSA signature has|One signature of) \d[\d,]*/g,
      "$1 …",
    )
    .replace(/chain has … block\b/g, "chain has … blocks")
    .replace(/(Blocks|block|Block) \d[\d, ]*(?=[ :,])/g, "$1 …");
}
