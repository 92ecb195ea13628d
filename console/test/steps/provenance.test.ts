import { createHash } from "node:crypto";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import canonicalize from "canonicalize";
import { expect, it } from "vitest";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { deriveAddress } from "../../page/signing-key.ts";
import { altering, forging, minting, tracing, transferring } from "../../page/stories/provenance/page.tsx";
import { createFakeCaller, runStep } from "./fake-caller.ts";

const metadata = {
  name: "Evening",
  description: '"Grüße" \u2028 \\ \u007f\ttab\u00a0</script> \u{1f5bc}',
  artworkUri: "",
};

/** A server that calls everything valid, and forgets all but one transfer. */
const server = createFakeCaller(({ service }) => {
  const transfers: { fromAddress: string; toAddress: string }[] = [];
  service(NftService, {
    async mint({ name, description, artworkUri }) {
      const { publicKey, secretKey } = ml_dsa65.keygen();
      const canonical = canonicalize({ name, description, artworkUri }) ?? "";
      const hash = createHash("sha256").update(canonical).digest();
      const creatorAddress = await deriveAddress(publicKey);
      return {
        metadataHash: hash.toString("hex"),
        signature: ml_dsa65.sign(hash, secretKey),
        creatorPublicKey: publicKey,
        creatorAddress,
      };
    },
    transfer({ fromOwner, newOwner }) {
      transfers.push({ fromAddress: fromOwner, toAddress: newOwner });
      return { currentOwner: newOwner };
    },
    getHistory: () => ({ history: transfers.slice(-1), totalSize: 1 }),
    getToken: () => ({
      currentOwner: transfers.at(-1)?.toAddress ?? "",
      metadata: { ...metadata, name: "A copy" },
    }),
    verify: () => ({ valid: true }),
  });
});

const mint = () => runStep(minting, server, metadata);

it("tracing detects a missing transfer and different metadata, even if the server disagrees", async () => {
  const minted = await mint();
  await runStep(transferring, server, { minting: minted });
  const traced = await runStep(tracing, server, { minting: minted });
  expect(traced).toMatchObject({ valid: true, isWhole: false, isSigned: false });
});

it.each([
  ["0", "Dvening"],
  ["99999", "Eveninf"],
  ["no number", "Dvening"],
])("altering changes letter %s, and finds the signature invalid", async (place, name) => {
  const { copy, verdicts } = await runStep(altering, server, { minting: await mint(), place });
  expect([copy.name, verdicts]).toEqual([name, { server: true, browser: false }]);
});

it("forging finds the forgery valid only with the forger's key", async () => {
  expect(await runStep(forging, server, { minting: await mint() })).toMatchObject({
    isSameHash: true,
    withOwnKey: { browser: true },
    withCreatorKey: { browser: false },
  });
});
