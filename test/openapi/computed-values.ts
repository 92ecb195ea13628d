/** Example values that a caller computes from answers: no call returns them. */
import { generateKeyPairSync } from "node:crypto";
import { ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import { wrappedKey } from "../../src/services/kms/examples.ts";
import { peerPacket } from "../../src/services/vpn/examples.ts";
import { sealAsPeer } from "../services/vpn-peer.ts";
import { type ImportParameters, wrapKeyFile } from "../support/wrap-key.ts";
import type { Answer, Members } from "./call-examples.ts";

type Outcomes = ReadonlyMap<string, Answer>;
type Compute = (outcomes: Outcomes) => Members | Promise<Members>;

/** Computes each value, by the name that examples refer to. */
export type ComputedValues = Readonly<Record<string, Compute>>;

export const computeValues: ComputedValues = {
  /** A packet from the peer whose key the gateway generated. */
  [peerPacket]: (outcomes) => {
    const { secretKey } = ml_kem1024.keygen(readBytes(outcomes, "register-peer", "privateKeySeed"));
    const sessionKey = ml_kem1024.decapsulate(readBytes(outcomes, "handshake", "ciphertext"), secretKey);
    return { packet: encode(sealAsPeer(sessionKey, Buffer.from("ping"))) };
  },
  [wrappedKey]: (outcomes) =>
    wrapNewKey({
      publicKey: readBytes(outcomes, "get-import-parameters", "publicKey"),
      importToken: "",
      algorithm: String(read(outcomes, "get-import-parameters", "algorithm")),
    }),
};

/** Wraps a new ML-DSA-65 key. */
export async function wrapNewKey(parameters: ImportParameters): Promise<Members> {
  const { privateKey } = generateKeyPairSync("ml-dsa-65");
  const file = privateKey.export({ format: "der", type: "pkcs8" });
  return { wrappedKey: encode((await wrapKeyFile(parameters, file)).wrappedKey) };
}

function read(outcomes: Outcomes, example: string, ...path: readonly string[]): unknown {
  return path.reduce((at: unknown, name) => (at as Members | undefined)?.[name], outcomes.get(example)?.body);
}

/** Reads bytes from an answer. */
export function readBytes(outcomes: Outcomes, example: string, ...path: readonly string[]): Uint8Array {
  return Uint8Array.from(Buffer.from(String(read(outcomes, example, ...path)), "base64"));
}

function encode(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
