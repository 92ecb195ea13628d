/** A block and the bytes that its hash covers. */
import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { BlockSchema } from "#gen/blockchain/blockchain_service_pb.ts";

export const validatorAlgorithm = "ML-DSA-65";

/** The hashed part of a block. */
export interface BlockContent {
  /** Position in the chain, from 0 (genesis). */
  readonly index: number;
  /** 64 lower-case hexadecimal digits. */
  readonly prevHash: string;
  readonly data: Uint8Array;
  readonly timestamp: Date;
  /** "0x" and 40 hexadecimal digits. */
  readonly validatorAddress: string;
}

/** A block with its hash and signature. */
export interface Block extends BlockContent {
  /** 64 lower-case hexadecimal digits. */
  readonly blockHash: string;
  /** Raw ML-DSA-65 over the 32 bytes of the hash; empty for genesis. */
  readonly signature: Uint8Array;
}

/**
 * Hashes a block: SHA-256 over index (8 bytes, big-endian) ‖ prevHash (32) ‖ milliseconds since 1970 (8,
 * big-endian) ‖ validatorAddress (20) ‖ data.
 */
export function hashBlock({ index, prevHash, data, timestamp, validatorAddress }: BlockContent): string {
  const header = Buffer.alloc(8 + 32 + 8 + 20);
  header.writeBigUInt64BE(BigInt(index), 0);
  header.write(prevHash, 8, "hex");
  header.writeBigUInt64BE(BigInt(timestamp.getTime()), 40);
  header.write(validatorAddress.slice("0x".length), 48, "hex");
  return createHash("sha256").update(header).update(data).digest("hex");
}

const genesisContent: BlockContent = {
  index: 0,
  prevHash: "0".repeat(64),
  data: new TextEncoder().encode("genesis"),
  timestamp: new Date(0),
  validatorAddress: `0x${"0".repeat(40)}`,
};

/** Block 0 of every chain. */
export const genesis: Block = Object.freeze({
  ...genesisContent,
  blockHash: hashBlock(genesisContent),
  signature: new Uint8Array(),
});

export function packBlock({ timestamp, ...block }: Block): MessageInitShape<typeof BlockSchema> {
  return { ...block, timestamp: timestampFromDate(timestamp) };
}
