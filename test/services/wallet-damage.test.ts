import type { Kysely } from "kysely";
import { expect, it } from "vitest";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import type { Schema } from "../../src/database/schema.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { failureOf, refusal } from "../support/refusal.ts";
import { damaged } from "../support/refusals.ts";
import { verifiesOutside } from "./node-crypto.ts";
import { describeService } from "./service-server.ts";

const data = bytesOf("pay 5 to bob");

describeService("a wallet that somebody changed in the database", WalletService, (_start, shared) => {
  type Wallets = Schema["wallets"];
  const secretOf = (walletId: string) => `wallets/${walletId}/secret-key`;
  const record =
    (changeOf: (row: Wallets, other: Wallets) => Partial<Wallets>) =>
    async (db: Kysely<Schema>, walletId: string, otherId: string) => {
      const read = (id: string) =>
        db.selectFrom("wallets").selectAll().where("wallet_id", "=", id).executeTakeFirstOrThrow();
      const set = changeOf(await read(walletId), await read(otherId));
      await db.updateTable("wallets").set(set).where("wallet_id", "=", walletId).execute();
    };
  const secret =
    (changeOf: (row: Schema["sealed_secrets"]) => Partial<Schema["sealed_secrets"]>, from: "own" | "other") =>
    async (db: Kysely<Schema>, walletId: string, otherId: string) => {
      const identity = secretOf(from === "own" ? walletId : otherId);
      const read = db.selectFrom("sealed_secrets").selectAll().where("identity", "=", identity);
      const set = changeOf(await read.executeTakeFirstOrThrow());
      await db.updateTable("sealed_secrets").set(set).where("identity", "=", secretOf(walletId)).execute();
    };

  it.each([
    ["public key", record(({ public_key }) => ({ public_key: flipBit(public_key, 20) }))],
    ["public key and tag", record((_, { public_key, record_tag }) => ({ public_key, record_tag }))],
    ["address", record(() => ({ address: `0x${"0".repeat(40)}` }))],
    ["label", record(() => ({ label: "mine" }))],
    ["owner", record(() => ({ owner: "mallory" }))],
    ["time", record(() => ({ created_at_ms: 1 }))],
    ["sealed secret", secret(({ ciphertext }) => ({ ciphertext: flipBit(ciphertext, 20) }), "own")],
    ["sealed secret, to another wallet's,", secret(({ identity: _, ...row }) => row, "other")],
    [
      "sealed secret, which is gone,",
      (db: Kysely<Schema>, walletId: string) =>
        db.deleteFrom("sealed_secrets").where("identity", "=", secretOf(walletId)).execute(),
    ],
  ] as const)("in its %s signs no more, while every other does, and is named", async (_what, change) => {
    const { client, tamper } = await shared();
    const [one, other] = [await client.createWallet({}), await client.createWallet({})];
    await tamper((db) => change(db, one.walletId, other.walletId));
    const call = () => client.signTransaction({ walletId: one.walletId, data });
    expect(await refusal(call())).toEqual(damaged);
    expect((await failureOf(call())).rawMessage).toContain(one.walletId);
    const { signature } = await client.signTransaction({ walletId: other.walletId, data });
    expect(verifiesOutside(other.publicKey, data, signature)).toBe(true);
    expect((await client.listWallets({})).status).toBe("success");
  });
});
