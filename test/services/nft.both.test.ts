import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { Kysely } from "kysely";
import { expect, it } from "vitest";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import type { Schema } from "../../src/database/schema.ts";
import { flipBit } from "../support/bytes.ts";
import { outcomesOf, refusal } from "../support/refusal.ts";
import { damaged, fieldInvalid, invalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { readPages } from "./answers.ts";
import { addressOf, sha256, verifiesOutside } from "./node-crypto.ts";
import { describeReplicas, describeService } from "./service-server.ts";

const metadata = { name: "Dawn", description: "oil on canvas", artworkUri: "ipfs://bafy" };
const bob = `0x${"b0".repeat(20)}`;

describeService("NftService.Mint", NftService, ({ client }) => {
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
    const { metadataHash, tokenId } = await client.mint(given);
    expect(metadataHash).toBe(sha256(canonical));
    expect(await client.getToken({ tokenId })).toMatchObject({ metadataHash, metadata: given });
    expect(await client.verify({ tokenId })).toMatchObject({ valid: true, reason: "" });
  });

  it("signs the 32 bytes of the hash, with a key pair generated for this mint", async () => {
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
    const texts = { description: "ж".repeat(10_000), artworkUri: "ж".repeat(2000) };
    const largest = { name: "ж".repeat(255), ...texts };
    const { tokenId } = await client.mint(largest);
    expect((await client.getToken({ tokenId })).metadata).toMatchObject(largest);
  });
});

describeService("NftService.Verify", NftService, ({ client }) => {
  it("accepts the key as PEM, and the hash in upper case, but no changed signature", async () => {
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
    const { signature: creatorSignature, metadataHash, creatorPublicKey } = await client.mint(metadata);
    const request = { metadataHash, creatorSignature, creatorPublicKey, ...change };
    expect(await refusal(client.verify(request))).toMatchObject(expected);
  });
});

describeService("NftService.ListTokens", NftService, ({ start }) => {
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

type NftClient = Client<typeof NftService>;

const mismatch = { code: "FailedPrecondition", reason: "OWNER_MISMATCH" };
const address = (i: number) => `0x${i.toString(16).padStart(40, "0")}`;
const addresses = Array.from({ length: 64 }, (_, i) => address(i + 1));

/** Returns a token's history as pairs of addresses, read in pages of 7. */
async function historyOf(client: NftClient, tokenId: string): Promise<[string, string][]> {
  const { rows } = await readPages(
    (pageToken) => client.getHistory({ tokenId, pageSize: 7, pageToken }),
    ({ history }) => history.map(({ fromAddress, toAddress }): [string, string] => [fromAddress, toAddress]),
  );
  return rows;
}

/** Mints a token and transfers it from its creator to 1, 2 and 3. */
async function travelled(client: NftClient) {
  const minted = await client.mint(metadata);
  for (const newOwner of addresses.slice(0, 3)) await client.transfer({ tokenId: minted.tokenId, newOwner });
  return minted;
}

describeService("NftService.Transfer", NftService, ({ client }) => {
  it("transfers the token, stores the history, oldest first, and leaves the creator's signature unchanged", async () => {
    const { tokenId, signature, metadataHash, creatorAddress } = await travelled(client);
    const creator = { metadataHash, creatorAddress, creatorSignature: signature };
    expect(await client.getToken({ tokenId })).toMatchObject({ ...creator, currentOwner: address(3) });
    expect(await historyOf(client, tokenId)).toEqual([
      [creatorAddress, address(1)],
      [address(1), address(2)],
      [address(2), address(3)],
    ]);
    const { history } = await client.getHistory({ tokenId });
    const times = history.map(({ timestamp }) => timestamp && timestampDate(timestamp).getTime());
    expect(times).toEqual(times.toSorted());
    expect(await client.verify({ tokenId })).toMatchObject({ valid: true, reason: "" });
  });

  it("accepts addresses in upper case, and stores them in lower case", async () => {
    const { tokenId } = await client.mint(metadata);
    const upper = `0x${"AB".repeat(20)}`;
    const { currentOwner, transfer } = await client.transfer({ tokenId, newOwner: upper });
    expect([currentOwner, transfer?.toAddress]).toEqual([upper.toLowerCase(), upper.toLowerCase()]);
    const back = await client.transfer({ tokenId, fromOwner: upper, newOwner: address(1) });
    expect(back.transfer?.fromAddress).toBe(upper.toLowerCase());
  });

  it("can transfer a token to its own owner", async () => {
    const { tokenId, owner } = await client.mint(metadata);
    await client.transfer({ tokenId, newOwner: owner });
    expect(await historyOf(client, tokenId)).toEqual([[owner, owner]]);
    expect(await client.verify({ tokenId })).toMatchObject({ valid: true });
    expect(await client.listTokens({ owner })).toMatchObject({ totalSize: 1, tokens: [{ tokenId }] });
  });

  it("fails if fromOwner is not the owner, and changes nothing", async () => {
    const { tokenId, owner } = await client.mint(metadata);
    const call = client.transfer({ tokenId, fromOwner: address(9), newOwner: address(1) });
    expect(await refusal(call)).toEqual(mismatch);
    expect((await client.getToken({ tokenId })).currentOwner).toBe(owner);
    expect(await historyOf(client, tokenId)).toEqual([]);
  });

  it("rejects an unknown token", async () => {
    const unknown = { code: "NotFound", reason: "TOKEN_NOT_FOUND" };
    expect(await refusal(client.transfer({ tokenId: "token-x", newOwner: address(1) }))).toEqual(unknown);
  });

  it("keeps a history without gaps for 64 racing callers without fromOwner", async () => {
    const { tokenId, owner } = await client.mint(metadata);
    await Promise.all(addresses.map((newOwner) => client.transfer({ tokenId, newOwner })));
    const history = await historyOf(client, tokenId);
    expect(history.map(([, to]) => to).toSorted()).toEqual(addresses);
    expect(history.map(([from]) => from)).toEqual([owner, ...history.slice(0, -1).map(([, to]) => to)]);
    expect((await client.getToken({ tokenId })).currentOwner).toBe(history.at(-1)?.[1]);
    expect(await client.verify({ tokenId })).toMatchObject({ valid: true });
  });
});

describeReplicas("NftService.Transfer", NftService, (startTwo) => {
  it("lets one of 64 racing callers with fromOwner win, 32 on each of two servers", async () => {
    const [here, there] = await startTwo();
    const { tokenId, owner } = await here.client.mint(metadata);
    const calls = addresses.map((newOwner, i) =>
      (i % 2 ? here : there).client.transfer({ tokenId, fromOwner: owner, newOwner }),
    );
    expect(await outcomesOf(calls)).toEqual({ answered: 1, refusals: Array(63).fill(mismatch) });
    expect(await historyOf(here.client, tokenId)).toHaveLength(1);
  });
});

type Change = (db: Kysely<Schema>, tokenId: string, otherId: string) => Promise<unknown>;

type Token = Schema["nft_tokens"];

const readToken = (db: Kysely<Schema>, tokenId: string): Promise<Token> =>
  db.selectFrom("nft_tokens").selectAll().where("token_id", "=", tokenId).executeTakeFirstOrThrow();
const token =
  (changeOf: (row: Token, other: Token) => Partial<Token>): Change =>
  async (db, tokenId, otherId) => {
    const set = changeOf(await readToken(db, tokenId), await readToken(db, otherId));
    await db.updateTable("nft_tokens").set(set).where("token_id", "=", tokenId).execute();
  };
const transferRow =
  (index: number, set: Partial<Schema["nft_transfers"]>): Change =>
  (db, tokenId) =>
    db
      .updateTable("nft_transfers")
      .set(set)
      .where("token_id", "=", tokenId)
      .where("transfer_index", "=", index)
      .execute();
const without =
  (index: number): Change =>
  (db, tokenId) =>
    db
      .deleteFrom("nft_transfers")
      .where("token_id", "=", tokenId)
      .where("transfer_index", "=", index)
      .execute();
const inserted =
  (set: Partial<Schema["nft_transfers"]>): Change =>
  async (db, tokenId) => {
    const rows = db.selectFrom("nft_transfers").selectAll().where("token_id", "=", tokenId);
    const last = await rows.orderBy("transfer_index", "desc").executeTakeFirstOrThrow();
    const row = { ...last, transfer_index: 4, ...set };
    await db.insertInto("nft_transfers").values(row).execute();
  };
const both =
  (...changes: Change[]): Change =>
  async (...where) => {
    for (const change of changes) await change(...where);
  };

const owned = token(() => ({ current_owner: address(9) }));
const creator = token((_, { creator_address, creator_public_key }) => ({
  creator_address,
  creator_public_key,
}));
const invalidKey = new Uint8Array(5);
const keyAndAddress = { creator_public_key: invalidKey, creator_address: addressOf(invalidKey) };
const extra = { from_address: address(3), to_address: address(9) };

const changes: [reason: string, what: string, change: Change][] = [
  ["METADATA", "name", token(() => ({ name: "Dusk" }))],
  ["METADATA", "hash", token(() => ({ metadata_hash: "0".repeat(64) }))],
  ["CREATOR", "creator's address", token(() => ({ creator_address: address(1) }))],
  ["SIGNATURE", "creator's key and address, to another token's,", creator],
  ["SIGNATURE", "signature", token((row) => ({ creator_signature: flipBit(row.creator_signature, 20) }))],
  ["CREATOR", "creator's key, which has an invalid length, with its address", token(() => keyAndAddress)],
  ["HISTORY", "owner", owned],
  ["HISTORY", "count of transfers, up,", token(() => ({ transfer_count: 4 }))],
  ["HISTORY", "count of transfers, down,", token(() => ({ transfer_count: 2 }))],
  [
    "RECORD",
    "last transfer, which was undone completely,",
    both(
      token(() => ({ transfer_count: 2, current_owner: address(2) })),
      without(3),
    ),
  ],
  ["RECORD", "time of minting", token(() => ({ minted_at_ms: 1 }))],
  ["HISTORY", "second transfer's recipient", transferRow(2, { to_address: address(9) })],
  ["HISTORY", "history: a transfer's tag", transferRow(2, { record_tag: "" })],
  ["HISTORY", "last recipient, and the owner", both(transferRow(3, { to_address: address(9) }), owned)],
  ["HISTORY", "first transfer, which was deleted,", without(1)],
  ["HISTORY", "last transfer, which was deleted,", without(3)],
  ["HISTORY", "history, which has an extra transfer,", inserted(extra)],
  ["HISTORY", "history, with an extra transfer after a gap,", inserted({ ...extra, transfer_index: 6 })],
];

describeService("a token that was tampered with in the database", NftService, ({ client, tamper }) => {
  it.each(changes)("is not valid (%s) after tampering with its %s", async (reason, _what, change) => {
    const [one, other] = [await travelled(client), await travelled(client)];
    await tamper((db) => change(db, one.tokenId, other.tokenId));
    const { valid, reason: given } = await client.verify({ tokenId: one.tokenId });
    expect([valid, given]).toEqual([false, reason]);
    expect(await client.verify({ tokenId: other.tokenId })).toMatchObject({ valid: true, reason: "" });
  });

  it("is not valid if a transfer from an earlier course of its history was put back", async () => {
    const { tokenId } = await client.mint(metadata);
    const send = (to: number) => client.transfer({ tokenId, newOwner: address(to) });
    await send(1);
    const before = await tamper((db) => readToken(db, tokenId));
    await send(2);
    const undone = await tamper(async (db) => {
      const transfers = db.selectFrom("nft_transfers").selectAll().where("token_id", "=", tokenId);
      const row = await transfers.where("transfer_index", "=", 2).executeTakeFirstOrThrow();
      await without(2)(db, tokenId, tokenId);
      await token(() => before)(db, tokenId, tokenId);
      return row;
    });
    await send(3);
    await send(4);
    expect(await client.verify({ tokenId })).toMatchObject({ valid: true });
    await tamper((db) => transferRow(2, undone)(db, tokenId, tokenId));
    expect(await client.verify({ tokenId })).toMatchObject({ valid: false, reason: "HISTORY" });
  });

  it.each([
    ["the first transfer is missing", without(1)],
    ["the second transfer is missing", without(2)],
    ["the last transfer is missing", without(3)],
    ["a transfer was changed", transferRow(2, { to_address: address(9) })],
  ])("shows no history if %s", async (_what, change) => {
    const { tokenId } = await travelled(client);
    await tamper((db) => change(db, tokenId, tokenId));
    expect(await refusal(client.getHistory({ tokenId }))).toEqual(damaged);
  });

  it("cannot be transferred if its record was changed", async () => {
    const { tokenId } = await travelled(client);
    await tamper((db) => owned(db, tokenId, tokenId));
    const call = client.transfer({ tokenId, fromOwner: address(9), newOwner: address(8) });
    expect(await refusal(call)).toEqual(damaged);
  });
});
