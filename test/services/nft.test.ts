import { expect, it } from "vitest";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { flipBit } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { invalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { readPages } from "./answers.ts";
import { addressOf, sha256, verifiesOutside } from "./node-crypto.ts";
import { describeService } from "./service-server.ts";

const metadata = { name: "Dawn", description: "oil on canvas", artworkUri: "ipfs://bafy" };
const unknown = { code: "NotFound", reason: "TOKEN_NOT_FOUND" };
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
    const token = await client.getToken({ tokenId });
    expect(token.metadataHash).toBe(metadataHash);
    expect(token.metadata).toMatchObject(given);
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

  it.each([
    ["no name", { name: "" }, "name"],
    ["a name of 256 characters", { name: "a".repeat(256) }, "name"],
    ["a line break in the name", { name: "a\nb" }, "name"],
    ["a description of 10,001 characters", { description: "a".repeat(10_001) }, "description"],
    ["NUL in the description", { description: "a\0" }, "description"],
    ["a URI of 2,001 characters", { artworkUri: "a".repeat(2001) }, "artworkUri"],
    ["a line break in the URI", { artworkUri: "a\n" }, "artworkUri"],
  ])("rejects %s", async (_what, change, field) => {
    const { client } = await shared();
    expect(await refusal(client.mint({ ...metadata, ...change }))).toEqual(invalid(field));
  });

  it("accepts the maximum of every field", async () => {
    const { client } = await shared();
    const largest = {
      ...{ name: "ж".repeat(255), description: "ж".repeat(10_000), artworkUri: "ж".repeat(2000) },
    };
    const { tokenId } = await client.mint(largest);
    expect((await client.getToken({ tokenId })).metadata).toMatchObject(largest);
  });
});

describeService("NftService.Verify", NftService, (_start, shared) => {
  /** Returns a valid request with changes. */
  async function request(client: Awaited<ReturnType<typeof shared>>["client"], change: object = {}) {
    const { signature: creatorSignature, metadataHash, creatorPublicKey } = await client.mint(metadata);
    return { metadataHash, creatorSignature, creatorPublicKey, ...change };
  }

  it("accepts the key as PEM, and the hash in upper case", async () => {
    const { client } = await shared();
    const { signature, metadataHash, creatorPublicKeyPem } = await client.mint(metadata);
    const whole = {
      metadataHash: metadataHash.toUpperCase(),
      creatorSignature: signature,
      creatorPublicKeyPem,
    };
    expect(await client.verify(whole)).toMatchObject({ valid: true, reason: "" });
  });

  it("reports a modified signature as not valid", async () => {
    const { client } = await shared();
    const whole = await request(client);
    const changed = { ...whole, creatorSignature: flipBit(whole.creatorSignature, 20) };
    expect(await client.verify(changed)).toMatchObject({ valid: false, reason: "SIGNATURE" });
  });

  it.each([
    ["an unknown token", { tokenId: "token-x" }, unknown],
    ["nothing", {}, { code: "InvalidArgument", reason: "FIELD_INVALID" }],
  ])("rejects %s", async (_what, whole, expected) => {
    const { client } = await shared();
    expect(await refusal(client.verify(whole))).toMatchObject(expected);
  });

  it.each([
    ["a token and a signature", { tokenId: "token-x" }, { reason: "FIELD_INVALID" }],
    ["two keys", { creatorPublicKeyPem: "x" }, { reason: "FIELD_INVALID" }],
    ["no hash", { metadataHash: "" }, { reason: "FIELD_INVALID" }],
    ["a hash of 63 digits", { metadataHash: "0".repeat(63) }, invalid("metadataHash")],
    ["a hash that is not hexadecimal", { metadataHash: "g".repeat(64) }, invalid("metadataHash")],
    ["a short signature", { creatorSignature: new Uint8Array(3308) }, wrongLength("creatorSignature")],
    ["a short key", { creatorPublicKey: new Uint8Array(1951) }, wrongKey("creatorPublicKey")],
    [
      "text that is not PEM",
      { creatorPublicKey: new Uint8Array(), creatorPublicKeyPem: "x" },
      wrongKey("creatorPublicKeyPem"),
    ],
  ])("rejects %s", async (_what, change, expected) => {
    const { client } = await shared();
    const call = client.verify(await request(client, change));
    expect(await refusal(call)).toMatchObject({ code: "InvalidArgument", ...expected });
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
  });

  it("rejects a page token from another owner's list, and from a history", async () => {
    const { client } = await start();
    const { tokenId } = await client.mint(metadata);
    await client.mint(metadata);
    for (const newOwner of [bob, `0x${"a".repeat(40)}`]) await client.transfer({ tokenId, newOwner });
    const { nextPageToken } = await client.listTokens({ pageSize: 1 });
    expect(nextPageToken).not.toBe("");
    const wrong = invalid("pageToken");
    expect(await refusal(client.listTokens({ owner: bob, pageToken: nextPageToken }))).toEqual(wrong);
    const history = await client.getHistory({ tokenId, pageSize: 1 });
    expect(history.nextPageToken).not.toBe("");
    expect(await refusal(client.listTokens({ pageToken: history.nextPageToken }))).toEqual(wrong);
    expect(await refusal(client.getHistory({ tokenId, pageToken: nextPageToken }))).toEqual(wrong);
  });
});
