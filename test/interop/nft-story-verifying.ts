/** The chapter of a token story in which tokens and signatures are verified. */
import { generateKeyPairSync, hash, sign } from "node:crypto";
import { describe, expect, it } from "vitest";
import { flipBit } from "../support/bytes.ts";
import type { NftClient, Stage } from "./nft-story.ts";

type Input = Parameters<NftClient["verify"]>[0];

export function tellOfVerifying({ service, token }: Stage): void {
  /** What the creator of Dawn signed, with the key given raw. */
  const ofDawn = () => {
    const { metadataHash, signature: creatorSignature, creatorPublicKey } = token("Dawn");
    return { metadataHash, creatorSignature, creatorPublicKey };
  };

  describe("Verify", () => {
    const validInputs: readonly (readonly [title: string, input: () => Input])[] = [
      ["a signature with its key raw", ofDawn],
      [
        "a signature with its key as PEM, and the hash in upper case",
        () => {
          const { metadataHash, signature, creatorPublicKeyPem } = token("Dawn");
          return {
            metadataHash: metadataHash.toUpperCase(),
            creatorSignature: signature,
            creatorPublicKeyPem,
          };
        },
      ],
      ["a signature that was made outside", signOutside],
      ["a token that has had many owners", () => ({ tokenId: token("Dawn").tokenId })],
    ];
    it.each(validInputs)("answers valid to %s", async (_title, input) => {
      expect(await service.verify(input())).toEqual({
        $typeName: "nft.VerifyResponse",
        status: "success",
        valid: true,
        reason: "",
      });
    });

    const changes: readonly (readonly [title: string, change: () => Input])[] = [
      ["another hash", () => ({ metadataHash: token("Dusk").metadataHash })],
      ["one bit of the signature changed", () => ({ creatorSignature: flipBit(token("Dawn").signature) })],
      ["the key of another creator", () => ({ creatorPublicKey: token("Dusk").creatorPublicKey })],
    ];
    it.each(changes)("answers not valid to %s, and names the signature", async (_title, change) => {
      const answer = await service.verify({ ...ofDawn(), ...change() });
      expect(answer).toMatchObject({ valid: false, reason: "SIGNATURE" });
    });
  });
}

function signOutside(): Input {
  const { publicKey, privateKey } = generateKeyPairSync("ml-dsa-65");
  const metadataHash = hash("sha256", "a picture that the service has never seen");
  return {
    metadataHash,
    creatorSignature: sign(null, Buffer.from(metadataHash, "hex"), privateKey),
    creatorPublicKey: new Uint8Array(publicKey.export({ format: "raw-public" })),
  };
}
