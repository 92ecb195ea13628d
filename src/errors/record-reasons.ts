/** Reasons that concern a stored key or record. */
import { Code } from "@connectrpc/connect";
import type { Reason } from "./reason.ts";

/** Reasons that concern a key of the key service. */
export const keyReasons = {
  KEY_NOT_FOUND: {
    code: Code.NotFound,
    cause:
      "The key does not exist, or with `--auth token` belongs to another user who has not granted you its use.",
    remedy:
      "List your keys with `GET /api/kms/keys`. `name/<name>` is a key of yours; name that of another user as `user/<user>/name/<name>`.",
  },
  KEY_STATE_INVALID: {
    code: Code.FailedPrecondition,
    cause:
      "A ROTATED key no longer signs or encapsulates. A DISABLED or DESTROY_SCHEDULED key performs no operations. A DESTROYED key cannot be used.",
    remedy:
      "To sign or encapsulate, use the key that replaced it (`replacedBy`), or its name. `EnableKey` enables a DISABLED key, `RestoreKey` restores a DESTROY_SCHEDULED one. The public key of `GetKey` verifies signatures in every state.",
  },
  KEY_USAGE_MISMATCH: {
    code: Code.FailedPrecondition,
    cause:
      "The call uses an ML-KEM key to sign, a signing key to encapsulate, or an SLH-DSA key with `mu` or a stream.",
    remedy: "Create a key for this use. `mu` and streams need ML-DSA.",
  },
  NAME_TAKEN: {
    code: Code.AlreadyExists,
    cause: "You have a key of this name already. A name stays taken, also after its keys are destroyed.",
    remedy: "Choose another name, or call `RotateKey` for a new version.",
  },
  GRANT_MISSING: {
    code: Code.PermissionDenied,
    cause: "Another user has granted you some operations of this key, but not this one.",
    remedy: "Ask the owner of the key for a grant that includes the operation. Only the owner changes a key.",
  },
  GRANT_NOT_FOUND: {
    code: Code.NotFound,
    cause: "The grant does not exist, was revoked, has expired, or belongs to a key of another user.",
    remedy: "List your grants with `GET /api/kms/grants`.",
  },
  IMPORT_TOKEN_INVALID: {
    code: Code.NotFound,
    cause: "The import token is unknown, has expired, was used already, or belongs to another user.",
    remedy: "Call `GetImportParameters` for a new public key and token, and wrap the key again.",
  },
  BATCH_TOO_LARGE: {
    code: Code.InvalidArgument,
    cause: "The signatures of a batch would exceed one response of 4 MiB. Nothing is signed.",
    remedy:
      "Send several batches of at most `maxItems` messages. The number depends on the algorithm and is smaller in JSON.",
  },
  KEY_DAMAGED: {
    code: Code.DataLoss,
    isServerFault: true,
    cause: "The stored key was changed outside the server.",
    remedy: "Operator: restore a backup, and find out who writes to the database.",
  },
} as const satisfies Record<string, Reason>;

/** Reasons that concern the records of the other services. */
export const recordReasons = {
  RECORD_DAMAGED: {
    code: Code.DataLoss,
    isServerFault: true,
    cause: "A stored record was changed outside the server. Other records still work.",
    remedy: "Operator: restore a backup, and find out who writes to the database.",
  },
  WALLET_NOT_FOUND: {
    code: Code.NotFound,
    cause: "The wallet does not exist, or belongs to another user.",
    remedy: "List your wallets.",
  },
  TOKEN_NOT_FOUND: {
    code: Code.NotFound,
    cause: "The NFT does not exist, or belongs to another user.",
    remedy: "List your tokens.",
  },
  OWNER_MISMATCH: {
    code: Code.FailedPrecondition,
    cause: "`fromOwner` is not the current owner.",
    remedy: "Read the token again, because it was transferred. Then send the current owner.",
  },
  PROPOSAL_NOT_FOUND: {
    code: Code.NotFound,
    cause: "The proposal does not exist, or belongs to another user.",
    remedy: "List your proposals.",
  },
  PROPOSAL_EXECUTED: {
    code: Code.FailedPrecondition,
    cause: "The proposal was executed. It executes once and accepts no more signatures.",
    remedy: "Nothing to do. Create a new proposal to repeat it.",
  },
  PROPOSAL_EXPIRED: {
    code: Code.FailedPrecondition,
    cause: "`expiresAt` of the proposal is in the past.",
    remedy: "Create a proposal with a later time.",
  },
  THRESHOLD_NOT_REACHED: {
    code: Code.FailedPrecondition,
    cause: "Fewer signers signed than the wallet requires. The message has both numbers.",
    remedy: "Have more signers sign. The proposal stays PENDING.",
  },
  SIGNER_UNKNOWN: {
    code: Code.PermissionDenied,
    cause: "The address is not a signer of the wallet.",
    remedy: "Use an address from `signers` of `GET /api/defi/wallets`.",
  },
  ALREADY_SIGNED: {
    code: Code.AlreadyExists,
    cause: "This signer has already signed this proposal.",
    remedy: "Nothing to do. Each signer counts once.",
  },
  SIGNATURE_MISSING: {
    code: Code.FailedPrecondition,
    cause: "The signer stores its own key, so the service cannot sign for it.",
    remedy: "Sign the 32 bytes of `signingHash` with that key and send `signature`.",
  },
  SIGNATURE_INVALID: {
    code: Code.InvalidArgument,
    cause: "The signature is not by this signer over `signingHash` of this proposal.",
    remedy: "Sign the raw 32 bytes (not hexadecimal, not base64) with ML-DSA-65 and an empty context.",
  },
  VALIDATOR_MISSING: {
    code: Code.FailedPrecondition,
    cause: "The chain has no validator yet (with `--auth token`: none of yours).",
    remedy: "Call `POST /api/blockchain/register-node`.",
  },
  VALIDATOR_NOT_FOUND: {
    code: Code.NotFound,
    cause: "The validator does not exist, or belongs to another user.",
    remedy: "Use the `validatorAddress` that RegisterNode returned.",
  },
  DEVICE_NOT_FOUND: {
    code: Code.NotFound,
    cause: "The device does not exist, or belongs to another user.",
    remedy: "List your devices.",
  },
  DEVICE_NOT_SIMULATED: {
    code: Code.FailedPrecondition,
    cause: "The device stores its own key, so the service cannot sign for it.",
    remedy: "Sign on the device, or register one with `simulated: true`.",
  },
  VENDOR_MISSING: {
    code: Code.FailedPrecondition,
    cause: "The request has no vendor key, and the device has no pinned vendor.",
    remedy: "Send `vendorPublicKey`, or register devices with it.",
  },
  TUNNEL_NOT_FOUND: {
    code: Code.NotFound,
    cause: "The tunnel was disconnected, never registered, or belongs to another user.",
    remedy: "Register the peer again.",
  },
  ADDRESS_POOL_EMPTY: {
    code: Code.ResourceExhausted,
    cause: "All addresses of 10.8.0.0/16 are in use.",
    remedy: "Disconnect unused tunnels.",
  },
  SESSION_MISSING: {
    code: Code.FailedPrecondition,
    cause:
      "This server has no session key for the tunnel: there was no handshake, the server restarted, or another replica has it.",
    remedy: "Make a handshake. Behind a proxy, send the header `tunnel-id`.",
  },
  REKEY_NEEDED: {
    code: Code.FailedPrecondition,
    cause: "The session key reached its limit of packets.",
    remedy: "Call `POST /api/vpn/rekey` and continue.",
  },
  HANDSHAKE_REPLAYED: {
    code: Code.AlreadyExists,
    cause: "The ciphertext already opened a session of this or another tunnel.",
    remedy:
      "Encapsulate again for each handshake and rekey. Someone else may have sent a recorded handshake.",
  },
  HANDSHAKE_LIMIT_REACHED: {
    code: Code.ResourceExhausted,
    cause: "The peer used 10,000 ciphertexts with this tunnel.",
    remedy: "Omit `ciphertext` so that the gateway encapsulates, or disconnect and register the peer again.",
  },
  PACKET_INVALID: {
    code: Code.InvalidArgument,
    cause: "The packet was changed, or is sealed with another key.",
    remedy: "Send the sealed packet unchanged: IV, ciphertext, tag. After a rekey, seal the data again.",
  },
  PACKET_REFLECTED: {
    code: Code.InvalidArgument,
    cause: "The gateway itself sealed this packet.",
    remedy: "Send packets that the peer sealed. Request `keyForm` PER_DIRECTION in the handshake.",
  },
  PACKET_REPLAYED: {
    code: Code.AlreadyExists,
    cause: "The gateway received this packet before.",
    remedy: "Seal the data again with a new random IV.",
  },
} as const satisfies Record<string, Reason>;

/** Reasons that concern verifiable logs. */
export const logReasons = {
  LOG_NOT_FOUND: {
    code: Code.NotFound,
    cause: "There is no log of this name.",
    remedy: "Use `audit` or `blockchain`.",
  },
  CHECKPOINT_NOT_FOUND: {
    code: Code.NotFound,
    cause:
      "The server never published this checkpoint, no longer stores it, or no checkpoint has that many cosignatures.",
    remedy: "Ask for the newest checkpoint with `GET /api/logs/{log}/checkpoint`.",
  },
  TILE_NOT_FOUND: {
    code: Code.NotFound,
    cause:
      "The path is not the one form of a tile in c2sp.org/tlog-tiles, or the newest checkpoint does not cover the tile.",
    remedy: "Compute paths and widths from the size of a checkpoint that you verified.",
  },
  LEAF_OUT_OF_RANGE: {
    code: Code.OutOfRange,
    cause: "The tree has no leaf with this index: indexes count from 0.",
    remedy: "Use an index below the size of the tree.",
  },
  TREE_SIZE_OUT_OF_RANGE: {
    code: Code.OutOfRange,
    cause: "The newest checkpoint does not cover that many leaves, or the sizes are in the wrong order.",
    remedy:
      "Use sizes of checkpoints, the smaller one first. About a second later the next one is published.",
  },
  LOG_ENTRIES_PRIVATE: {
    code: Code.PermissionDenied,
    cause: "The operator publishes the hashes of audit entries, but not the entries.",
    remedy:
      "Read the entries of your keys with `GET /api/kms/audit`. Operator: `--audit-log-public` publishes all entries to anyone.",
  },
  NOTE_INVALID: {
    code: Code.InvalidArgument,
    cause: "The bytes are not a signed note with a checkpoint of this log.",
    remedy: "Send the checkpoint of this server unchanged, with the lines of witnesses added at its end.",
  },
  WITNESS_UNKNOWN: {
    code: Code.PermissionDenied,
    cause: "None of the signatures is by a witness that the operator trusts.",
    remedy: "Compare with `witnessKeys` of `GET /api/logs`. Operator: `--witnesses`.",
  },
  COSIGNATURE_INVALID: {
    code: Code.InvalidArgument,
    cause: "A signature of a trusted witness does not verify, occurs twice, or states a time in the future.",
    remedy: "Ask the witness again, and send its line unchanged. Synchronise the clocks.",
  },
} as const satisfies Record<string, Reason>;
