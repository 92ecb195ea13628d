/** Signatures that other programs verify, certificates, and what signers refuse to sign. */
import { verify } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { createAuthority, issueServerCertificate, openAuthority } from "../../src/crypto/x509.ts";
import { qsp, qspDone, qspJson, timeout, useServer } from "./qsp.ts";

const server = useServer();

/** A directory with a file to sign. */
function placeWith(content: string) {
  const place = server.place();
  writeFileSync(join(place.cwd, "file"), content);
  return place;
}

it.each(["ML-DSA-65", "SLH-DSA-SHA2-128f"])(
  "qsp sign with a %s key signs as node:crypto verifies",
  { timeout },
  async (algorithm) => {
    const content = "chunks".repeat(500_000);
    const place = placeWith(content);
    const { result } = await server.client(KmsService).createKey({ algorithm });
    await qspDone(["keygen", "local", "--algorithm", algorithm], place);
    await qspDone(["kms", "get", result?.keyId ?? "", "--public-key", "held.pub"], place);
    await qspDone(["sign", "file", "--key-file", "local.key", "--out", "local.sig"], place);
    await qspDone(["sign", "file", "--key", result?.keyId ?? "", "--out", "held.sig"], place);
    const read = (name: string): Buffer => readFileSync(join(place.cwd, name));
    for (const key of ["local", "held"])
      expect(verify(null, Buffer.from(content), read(`${key}.pub`), read(`${key}.sig`))).toBe(true);
  },
);

it("qsp verify --certificate uses the first certificate in the file", { timeout }, async () => {
  const place = { ...placeWith("hello"), url: "http://127.0.0.1:1" };
  const now = new Date();
  const authority = createAuthority("ML-DSA-65", now);
  const issue = () =>
    issueServerCertificate(openAuthority(authority), { names: ["signer.test"], days: 1, now });
  const [{ certificatePem, secretKeyPem }, { certificatePem: otherPem }] = [issue(), issue()];
  const files = {
    "me.key": secretKeyPem,
    // OpenSSL writes text before a certificate, and some editors leave spaces at line ends.
    "me.pem": `Subject: CN=me\n${certificatePem.replaceAll("\n", " \r\n")}${otherPem}`,
    "other.pem": otherPem + certificatePem,
    "ca.pem": authority.certificatePem,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(place.cwd, name), text);
  await qspDone(["sign", "file", "--key-file", "me.key"], place);
  const line = ["verify", "file", "--signature", "file.sig", "--certificate"];
  expect((await qsp([...line, "me.pem"], place)).code).toBe(0);
  expect((await qsp([...line, "other.pem"], place)).code).toBe(1);
  expect(await qsp([...line, "ca.pem"], place)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("ca.pem may not sign content: its key usage has no digitalSignature"),
  });
});

it("a proposal that was changed in the store is not signed, and the list marks it", { timeout }, async () => {
  const place = server.place();
  await qspDone(["keygen", "ada"], place);
  const { walletId } = await qspJson(
    ["multisig", "create", "--signer", "ada.pub", "--threshold", "1"],
    place,
  );
  const { proposal } = await qspJson(["proposal", "create", String(walletId), "pay bob"], place);
  const { proposalId } = proposal as { proposalId: string };
  await server.tamper(
    `update defi_proposals set data = cast('pay eve' as blob) where proposal_id = '${proposalId}'`,
  );
  expect(await qspDone(["proposal", "list", String(walletId)], place)).toMatch(/ DAMAGED: /);
  expect(await qsp(["proposal", "sign", proposalId, "--key-file", "ada.key"], place)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`proposal ${proposalId} was changed`),
  });
});
