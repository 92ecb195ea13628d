/** Values that a protocol may damage in transit: every character and every byte, large numbers, headers. */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { sha256 } from "../services/node-crypto.ts";
import { registerOwn, signedReading } from "../services/own-device.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { reused, stateRefuses } from "../support/refusals.ts";
import type { Tested } from "./client-tests.ts";
import { createForeignClient } from "./foreign-client.ts";
import { oddId } from "./refusal-tests.ts";

/** Every character counts: line ends, invisible characters, and a letter made of two code points. */
const oddText = '\ufeffжé e\u0301 😀 "\\/\r\n\t\0 ';
const everyByte = Uint8Array.from({ length: 256 }, (_, i) => i);

/** Tests that values arrive unchanged in both directions. */
export function testValues({ driver, nextServer }: Tested): void {
  const kms = createForeignClient(KmsService, driver, nextServer);

  describe("sends and receives unchanged", () => {
    it("text in a body and in an answer", async () => {
      const wallets = createForeignClient(WalletService, driver, nextServer);
      const dapp = createForeignClient(DappService, driver, nextServer);
      expect((await wallets.createWallet({ label: oddId })).label).toBe(oddId);
      expect((await dapp.deployContract({ code: oddText })).codeHash).toBe(sha256(oddText));
    });

    it("text in a path and in a query, as the audit log shows", async () => {
      const keyId = `${oddId} ${randomUUID()}`;
      await refusal(kms.destroyKey({ keyId }));
      const { auditLog } = await kms.getAuditLog({ keyId });
      expect(auditLog.map((entry) => entry.keyId)).toEqual([keyId]);
    });

    it("every byte value", async () => {
      const chain = createForeignClient(BlockchainService, driver, nextServer);
      await chain.registerNode({});
      expect((await chain.addBlock({ data: everyByte })).block?.data).toEqual(everyByte);
    });

    it("a number with more than 32 bits", async () => {
      const iot = createForeignClient(IotService, driver, nextServer);
      const { deviceId, sign } = await registerOwn(iot);
      const [telemetry, sequence] = [bytesOf("21.5"), 2 ** 40];
      const reading = {
        ...{ deviceId, telemetry, sequence },
        signature: sign(signedReading(telemetry, sequence)),
      };
      expect(await iot.sendTelemetry(reading)).toMatchObject({ verified: true });
      expect(await iot.sendTelemetry(reading)).toMatchObject({ reason: "SEQUENCE_OLD" });
    });

    it("an Idempotency-Key that creates and destroys a key once", async () => {
      const order = randomUUID();
      const once = (name: string) => ({ headers: { "Idempotency-Key": `${order} ${name}` } });
      const made = await kms.createKey({ alias: "orders" }, once("create"));
      expect(await kms.createKey({ alias: "orders" }, once("create"))).toEqual(made);
      expect(await refusal(kms.createKey({ alias: "others" }, once("create")))).toEqual(reused);
      const keyId = made.result?.keyId ?? "";
      const destroyed = await kms.destroyKey({ keyId }, once("destroy"));
      expect(await kms.destroyKey({ keyId }, once("destroy"))).toEqual(destroyed);
      expect(await refusal(kms.destroyKey({ keyId }))).toEqual(stateRefuses);
    });
  });
}
