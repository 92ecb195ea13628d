import { expect, it } from "vitest";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { flipBit } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { fieldInvalid, invalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { readPages } from "./answers.ts";
import { addressOf, sha256, verifiesOutside } from "./node-crypto.ts";
import { describeService } from "./service-server.ts";

const metadata = { name: "Dawn", description: "oil on canvas", artworkUri: "ipfs://bafy" };
const bob = `0x${"b0".repeat(20)}`;

describeService("NftService.Mint", NftService, (_start, shared) => {
  /** Hashed texts in RFC 8785 form, written by hand instead of by a library. */
  it.each([
    ["plain text", metadata, '{"artworkUri":"ipfs://bafy","description":"oil on canvas","name":"Dawn"}'],
    [
      "quotes, backslashes and slashes",
      { name: '"a" \\ /', description: "", artworkUri: "" },
      String.raw`{"artworkUri":"","description":"","name":"\"a\" \\ /"}`,
    ],
    [
      "control characters, in the short form if one exists, otherwise in lower-case hexadecimal",
      { name: "n", description: "\b\t\n\f\r\u0001\u001f\u007f", artworkUri: "" },
      `${String.raw`{"artworkUri":"","description":"\b\t\n\f\r\u0001\u001f`}\u007f","name":"n"}`,
    ],
    [
      "non-ASCII letters, which stay unescaped",
      { name: "Ω é e\u0301 \u2028 €", description: "\u{1f30c} ж", artworkUri: "https://x/ö" },
      '{"artworkUri":"https://x/ö","description":"\u{1f30c} ж","name":"Ω é e\u0301 \u2028 €"}',
    ],
  ])("hashes the RFC 8785 form of %s", async (_what, given, canonical) => {
    const { client } = await shared();
    const { metadataHash, tokenId } = await client.mint(given);
    expect(metadataHash).toBe(sha256(canonical));
    expect(await client.getToken({ tokenId })).toMatchObject({ metadataHash, metadata: given });
    expect(await client.verify({ tokenId })).toMatchObject({ valid: true, reason: "" });
  });

  it("signs the 32 bytes of the hash, with a key pair generated for this mint", async () => {
    const { client } = await shared();
    const [one, other] = [await client.mint(metadata), await client.mint(metadata)];
    const hash = Buffer.from(one.metadataHash, "hex");
    expect(verifiesOutside(one.creatorPublicKey, hash, one.signature)).toBe(true);
    expect(verifiesOutside(one.creatorPublicKeyPem, hash, one.signature)).toBe(true);
    expect(verifiesOutside(one.creatorPublicKey, Buffer.from(one.metadataHash), one.signature)).toBe(false);
    expect(verifiesOutside(other.creatorPublicKey, hash, one.signature)).toBe(false);
    expect(one.creatorAddress).toBe(addressOf(one.creatorPublicKey));
    expect(one.owner).toBe(one.creatorAddress);
  });

  it("accepts the maximum of every field", async () => {
    const { client } = await shared();
    const texts = { description: "ж".repeat(10_000), artworkUri: "ж".repeat(2000) };
    const largest = { name: "ж".repeat(255), ...texts };
    const { tokenId } = await client.mint(largest);
    expect((await client.getToken({ tokenId })).metadata).toMatchObject(largest);
  });
});

describeService("NftService.Verify", NftService, (_start, shared) => {
  it("accepts the key as PEM, and the hash in upper case, but no changed signature", async () => {
    const { client } = await shared();
    const { signature, metadataHash: hash, creatorPublicKeyPem } = await client.mint(metadata);
    const whole = { metadataHash: hash.toUpperCase(), creatorSignature: signature, creatorPublicKeyPem };
    expect(await client.verify(whole)).toMatchObject({ valid: true, reason: "" });
    const changed = { ...whole, creatorSignature: flipBit(signature, 20) };
    expect(await client.verify(changed)).toMatchObject({ valid: false, reason: "SIGNATURE" });
  });

  const [noKey, shortKey] = [new Uint8Array(), new Uint8Array(1951)];
  const notPem = { creatorPublicKey: noKey, creatorPublicKeyPem: "x" };
  it.each([
    ["a token and a signature", { tokenId: "token-x" }, fieldInvalid],
    ["two keys", { creatorPublicKeyPem: "x" }, fieldInvalid],
    ["no hash", { metadataHash: "" }, fieldInvalid],
    ["a short signature", { creatorSignature: new Uint8Array(3308) }, wrongLength("creatorSignature")],
    ["a short key", { creatorPublicKey: shortKey }, wrongKey("creatorPublicKey")],
    ["text that is not PEM", notPem, wrongKey("creatorPublicKeyPem")],
  ])("rejects %s", async (_what, change, expected) => {
    const { client } = await shared();
    const { signature: creatorSignature, metadataHash, creatorPublicKey } = await client.mint(metadata);
    const request = { metadataHash, creatorSignature, creatorPublicKey, ...change };
    expect(await refusal(client.verify(request))).toMatchObject(expected);
  });
});

describeService("NftService.ListTokens", NftService, (start) => {
  it("lists in minting order, page by page, and filters by owner address in either case", async () => {
    const { client } = await start();
    const ids: string[] = [];
    for (let i = 0; i < 5; i += 1) ids.push((await client.mint(metadata)).tokenId);
    const [first = "", , third = "", , fifth = ""] = ids;
    for (const tokenId of [fifth, first, third]) await client.transfer({ tokenId, newOwner: bob });
    const read = (owner: string) =>
      readPages(
        (pageToken) => client.listTokens({ owner, pageSize: 2, pageToken }),
        ({ tokens }) => tokens.map(({ tokenId }) => tokenId),
      );
    expect(await read("")).toEqual({ rows: ids, sizes: [2, 2, 1], totals: [5] });
    const ofBob = { rows: [first, third, fifth], sizes: [2, 1], totals: [3] };
    expect(await read(bob)).toEqual(ofBob);
    expect(await read(`0x${"B0".repeat(20)}`)).toEqual(ofBob);
    await client.transfer({ tokenId: third, newOwner: `0x${"a".repeat(40)}` });
    expect(await read(bob)).toEqual({ rows: [first, fifth], sizes: [2], totals: [2] });

    // A page token belongs to one list.
    const { nextPageToken: ofAll } = await client.listTokens({ pageSize: 1 });
    const { nextPageToken: ofHistory } = await client.getHistory({ tokenId: third, pageSize: 1 });
    for (const call of [
      client.listTokens({ owner: bob, pageToken: ofAll }),
      client.listTokens({ pageToken: ofHistory }),
      client.getHistory({ tokenId: third, pageToken: ofAll }),
    ])
      expect(await refusal(call)).toEqual(invalid("pageToken"));
  });
});
