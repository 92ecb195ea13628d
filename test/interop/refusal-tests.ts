/** Refusals for every kind of field and for most codes. The tests of the services cover which calls are refused. */
import type { DescMethod } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import type { Members } from "../openapi/call-examples.ts";
import { toCall } from "./calls.ts";
import type { Tested } from "./client-tests.ts";

/** An unknown ID that needs escaping in a path, in a query and in JSON. */
export const oddId = 'no such/key? "é" & 100%+😀';

const data = Buffer.from("hello").toString("base64");

/** Names of the codes, as in JSON. */
const codes = {
  KEY_NOT_FOUND: "NOT_FOUND",
  WALLET_NOT_FOUND: "NOT_FOUND",
  TUNNEL_NOT_FOUND: "NOT_FOUND",
  TOKEN_NOT_FOUND: "NOT_FOUND",
  FIELD_INVALID: "INVALID_ARGUMENT",
  TOKEN_MISSING: "UNAUTHENTICATED",
};

const refused: readonly [title: string, DescMethod, Members, reason: keyof typeof codes][] = [
  ["an unknown ID in a path", KmsService.method.getKey, { keyId: oddId }, "KEY_NOT_FOUND"],
  [
    "an ID next to a body",
    WalletService.method.signTransaction,
    { walletId: oddId, data },
    "WALLET_NOT_FOUND",
  ],
  ["an unknown ID in a body", VpnService.method.handshake, { tunnelId: oddId }, "TUNNEL_NOT_FOUND"],
  ["an ID in a call that supports GET", NftService.method.getHistory, { tokenId: oddId }, "TOKEN_NOT_FOUND"],
  ["a wrong page token in a query", KmsService.method.listKeys, { pageToken: oddId }, "FIELD_INVALID"],
  ["no token", TokenService.method.getSecureData, {}, "TOKEN_MISSING"],
];

/** Tests that a client receives the code and the reason of a refusal. */
export function testRefusals({ driver, nextServer }: Tested): void {
  describe("receives the reason of a refused call with", () => {
    it.each(refused)("%s", async (_title, method, request, reason) => {
      const server = nextServer(method.parent);
      const outcome = await driver.call(server.url, toCall(server, method, request));
      expect(outcome).toEqual({ refusal: { code: codes[reason], reason } });
    });
  });
}
