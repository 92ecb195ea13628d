/** Vectors of blocks: their bytes, their hash and the validator's signature. */
import { deriveAddress } from "../../../src/crypto/address.ts";
import { type BlockContent, genesis, hashBlock } from "../../../src/services/blockchain/block.ts";
import { mlDsaKey } from "./keys.ts";
import { awkwardText, utf8, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

/** The fields of a block before its data, one by one. */
function headerParts({ index, prevHash, timestamp, validatorAddress }: BlockContent) {
  const number = (value: number): string => BigInt(value).toString(16).padStart(16, "0");
  return {
    index: number(index),
    prevHash,
    timestampMs: number(timestamp.getTime()),
    validatorAddress: validatorAddress.slice("0x".length),
  };
}

/** A chain from genesis, and invalid blocks that must be rejected. */
export function blockVectors(): VectorSet {
  const key = mlDsaKey("ML-DSA-65", "validator");
  const validatorAddress = deriveAddress(key.publicKey);
  const cases: VectorCase[] = [];
  let last = genesis;
  const add = (name: string, content: BlockContent, signature: Uint8Array, valid = true): void => {
    const { index, prevHash, data, timestamp } = content;
    const parts = headerParts(content);
    const blockHash = hashBlock(content);
    if (valid) last = { ...content, blockHash, signature };
    cases.push(
      vectorCase(name, {
        valid,
        input: {
          key: index === 0 ? null : "validator",
          index,
          prevHash,
          timestamp: timestamp.toISOString(),
          validatorAddress: content.validatorAddress,
          data: data.toHex(),
        },
        intermediate: { ...parts, hashedBytes: `${Object.values(parts).join("")}${data.toHex()}` },
        result: { blockHash, signature: signature.toHex() },
      }),
    );
  };
  const next = (data: Uint8Array, time: string): BlockContent => {
    const { index, blockHash: prevHash } = last;
    return { index: index + 1, prevHash, data, timestamp: new Date(time), validatorAddress };
  };
  const hashOf = (content: BlockContent): Uint8Array => Uint8Array.fromHex(hashBlock(content));
  const addSigned = (name: string, content: BlockContent): void =>
    add(name, content, key.sign(hashOf(content)));

  add("genesis", genesis, genesis.signature);
  addSigned("text", next(utf8("hello"), "2026-01-02T03:04:05.678Z"));
  addSigned("one zero byte, at a whole second", next(Uint8Array.of(0), "2026-01-02T03:04:06.000Z"));
  addSigned("non-ASCII text", next(utf8(awkwardText), "2026-01-02T03:04:06.001Z"));
  addSigned(
    "256 different bytes",
    next(
      Uint8Array.from({ length: 256 }, (_, i) => i),
      "2026-12-31T23:59:59.999Z",
    ),
  );
  const far = { ...next(utf8("hello"), "9999-12-31T23:59:59.999Z"), index: Number.MAX_SAFE_INTEGER };
  const { prevHash } = far;
  addSigned("the largest index", far);
  const wrong = { ...far, index: 5, prevHash };
  add("a signature over the hexadecimal digits of the hash", wrong, key.sign(utf8(hashBlock(wrong))), false);
  add("a signature over the bytes before they are hashed", wrong, key.sign(bytesOf(wrong)), false);
  add("no signature", wrong, new Uint8Array(), false);
  return {
    format: "qsp-vectors/1",
    name: "block",
    specification: "docs/formats.md#block",
    note: "The signatures are deterministic; servers sign hedged. Cases up to '256 different bytes' are one chain.",
    keys: { validator: key.entry },
    cases,
  };
}

function bytesOf(content: BlockContent): Uint8Array {
  return Buffer.concat([Buffer.from(Object.values(headerParts(content)).join(""), "hex"), content.data]);
}
