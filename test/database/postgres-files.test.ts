/** Certificates and keys named in a PostgreSQL URL: OpenSSL would skip an unreadable block. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createAuthority } from "../../src/crypto/x509.ts";
import { openDatabase } from "../support/open-store.ts";
import { storageError } from "../support/storage-error.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const { certificatePem, secretKeyPem } = createAuthority("ECDSA-P256", new Date());

it.each([
  ["sslrootcert", `  ${certificatePem}${certificatePem}`, /line 1 is not a whole BEGIN or END line/],
  ["sslrootcert", secretKeyPem, /no certificate, which begins with/],
  ["sslcert", "text", /no certificate in PEM/],
  ["sslkey", ` ${secretKeyPem}${secretKeyPem}`, /line 1 is not a whole BEGIN or END line/],
  ["sslkey", certificatePem, /no private key, which begins with/],
  ["sslkey", undefined, /it does not exist/],
])("rejects an unreadable %s file by name: %#", async (option, content, problem) => {
  const path = join(makeTemporaryDirectory(), "file");
  if (content !== undefined) writeFileSync(path, content);
  // Nothing listens there: the file is read first.
  const url = `postgres://127.0.0.1:1/qsp?${option}=${encodeURIComponent(path)}`;
  const opening = openDatabase({ kind: "postgres", url });
  await expect(opening).rejects.toThrow(storageError(problem));
  await expect(opening).rejects.toThrow(`${option} of the database URL, ${path}: `);
});
