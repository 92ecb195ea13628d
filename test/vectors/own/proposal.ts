/** Vectors of proposals: what signers sign. */
import canonicalize from "canonicalize";
import { deriveAddress } from "../../../src/crypto/address.ts";
import { hashProposal } from "../../../src/services/defi/proposal.ts";
import { mlDsaKey } from "./keys.ts";
import { awkwardText, utf8, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

interface Content {
  readonly proposalId: string;
  readonly walletId: string;
  readonly data: Uint8Array;
  readonly title: string;
  readonly threshold: number;
  readonly createdAt: string;
  /** Empty if the proposal does not expire. */
  readonly expiresAt: string;
}

const plain: Content = {
  proposalId: "proposal-00000000-0000-4000-8000-000000000002",
  walletId: "multisig-00000000-0000-4000-8000-000000000003",
  data: utf8("pay 5 to bob"),
  title: "",
  threshold: 2,
  createdAt: "2026-01-02T03:04:05.678Z",
  expiresAt: "",
};

/** Proposals, and invalid signatures that must be rejected. */
export function proposalVectors(): VectorSet {
  const key = mlDsaKey("ML-DSA-65", "signer");
  const make = (
    name: string,
    content: Content,
    {
      valid = true,
      signed,
    }: { valid?: boolean; signed?: (hash: Uint8Array, json: string) => Uint8Array } = {},
  ): VectorCase => {
    const { data, ...texts } = content;
    const canonicalJson = canonicalize({ ...texts, data: data.toBase64(), purpose: "defi proposal" }) ?? "";
    const signingHash = hashProposal({
      ...content,
      createdAt: new Date(content.createdAt),
      expiresAt: content.expiresAt === "" ? undefined : new Date(content.expiresAt),
      ...{ status: "PENDING", signedBy: [], owner: "", executedAt: undefined },
    });
    const signature = key.sign(signed?.(signingHash, canonicalJson) ?? signingHash);
    return vectorCase(name, {
      valid,
      input: { key: "signer", ...texts, data: data.toHex() },
      intermediate: { canonicalJson, hashedBytes: utf8(canonicalJson).toHex() },
      result: {
        signingHash: Buffer.from(signingHash).toString("hex"),
        signer: deriveAddress(key.publicKey),
        signature: signature.toHex(),
      },
    });
  };
  return {
    format: "qsp-vectors/1",
    name: "proposal",
    specification: "docs/formats.md#proposal",
    note: "purpose is always 'defi proposal'. The signatures are deterministic; servers sign hedged.",
    keys: { signer: key.entry },
    cases: [
      make("no title, no expiry", plain),
      make("an expiry at a whole second", { ...plain, expiresAt: "2026-02-01T00:00:00.000Z" }),
      make("a non-ASCII title", { ...plain, title: 'é漢😀 "5" \\ / \u2028 <&>' }),
      make("control characters in a title, which the server refuses", { ...plain, title: awkwardText }),
      make("bytes whose base64 has + and / and padding", {
        ...plain,
        data: Uint8Array.of(0xfb, 0xef, 0xff, 0xfe),
      }),
      make("a threshold of 100", { ...plain, threshold: 100 }),
      make("a signature over the hexadecimal digits of the hash", plain, {
        valid: false,
        signed: (hash) => utf8(Buffer.from(hash).toString("hex")),
      }),
      make("a signature over the JSON before it is hashed", plain, {
        valid: false,
        signed: (_hash, json) => utf8(json),
      }),
    ],
  };
}
