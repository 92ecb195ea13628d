/** The core's migration steps never change: a released step has already run in users' stores. */
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { listSteps } from "../../src/database/migrations.ts";
import { coreTables } from "../support/open-store.ts";

/**
 * SHA-256 of each step's statements, without indentation. A new step adds a line; existing lines never
 * change.
 */
const known = {
  sqlite: {
    "0001-audit": "5f6ed1f9f50baf65",
    "0001-blockchain": "f71f34203257b9d3",
    "0001-dapp": "992a25ed02d97f96",
    "0001-defi": "b7fce5a2f5b0f395",
    "0001-identity": "1632f2ebe5c68b0d",
    "0001-iot": "7db8ae815623cb05",
    "0001-kms": "6b2f8d81563c5005",
    "0001-nft": "a78080b61abd8172",
    "0001-records": "e15c43e39ddc7726",
    "0001-secrets": "5d1ee6606b26c477",
    "0001-vpn": "cd20a49f78f6ac38",
    "0001-wallet": "f2e99341a198aa49",
    "0002-audit": "99e0234e1acaea12",
    "0002-identity": "f7d66191ff045016",
    "0002-kms": "0436f6e54a217656",
    "0003-audit": "8a01f601a4eb4224",
    "0004-kms": "93e3b3b1b617a59f",
    "0005-iot-challenges": "d1fcca0327c55f9f",
    "0005-kms-grants": "b30c636ae1f4d151",
    "0006-identity": "f38729582d760ba6",
    "0007-kms": "1ddc5b79e078b152",
    "0008-kms": "17c4c8ce80f82fc7",
    "0009-iot": "51d4bbe45b22c348",
  },
  postgres: {
    "0001-audit": "5fe5921dd472d3d1",
    "0001-blockchain": "15671feb80c5ebe7",
    "0001-dapp": "ae464aca64875556",
    "0001-defi": "bb4160b8b8a3ae57",
    "0001-identity": "aaf1d5a56dcddef8",
    "0001-iot": "fb88e04e5573bb98",
    "0001-kms": "61bfc4ce12cf2a87",
    "0001-nft": "ad3c9359a961a138",
    "0001-records": "3ce5098b9cf7a485",
    "0001-secrets": "888fd0a5f7241ce8",
    "0001-vpn": "e1b6a458fc2fe6d9",
    "0001-wallet": "56ddb64d34e0b506",
    "0002-audit": "99e0234e1acaea12",
    "0002-identity": "72734b39fe7b0213",
    "0002-kms": "576352269138b884",
    "0003-audit": "bd6965e746b0184a",
    "0004-kms": "ce4635e70920b9b4",
    "0005-iot-challenges": "d1fcca0327c55f9f",
    "0005-kms-grants": "b30c636ae1f4d151",
    "0006-identity": "f38729582d760ba6",
    "0007-kms": "1ddc5b79e078b152",
    "0008-kms": "17c4c8ce80f82fc7",
    "0009-iot": "c43734aa1ee59957",
  },
};

it.each(["sqlite", "postgres"] as const)("the statements of released steps never change: %s", (kind) => {
  const hashes = listSteps(kind, coreTables.owners).map(([name, statements]) => {
    const text = statements.map((statement) => statement.replaceAll(/\s+/g, " ")).join(";\n");
    return [name, createHash("sha256").update(text).digest("hex").slice(0, 16)];
  });
  expect(Object.fromEntries(hashes)).toEqual(known[kind]);
});
