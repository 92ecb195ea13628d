import { expect, it } from "vitest";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { sha256, verifiesOutside } from "./node-crypto.ts";
import { describeService } from "./service-server.ts";

describeService("DappService.DeployContract", DappService, (_start, shared) => {
  it.each(["return 1", "a\r\n\tb\0", "\ufeffжé e\u0301 \u{1f30c}", " "])(
    "hashes the UTF-8 of %j, and signs the 32 bytes of the hash",
    async (code) => {
      const { client } = await shared();
      const { codeHash, signature, publicKey, publicKeyPem } = await client.deployContract({ code });
      expect(codeHash).toBe(sha256(Buffer.from(code, "utf8")));
      const hash = Buffer.from(codeHash, "hex");
      expect(verifiesOutside(publicKey, hash, signature)).toBe(true);
      expect(verifiesOutside(publicKeyPem, hash, signature)).toBe(true);
      expect(verifiesOutside(publicKey, Buffer.from(codeHash), signature)).toBe(false);
    },
  );

  it("creates a key pair for each contract", async () => {
    const { client } = await shared();
    const one = await client.deployContract({ code: "x" });
    const other = await client.deployContract({ code: "x" });
    expect(one.publicKey).not.toEqual(other.publicKey);
    expect(one.codeHash).toBe(other.codeHash);
    expect(one.contractId).not.toBe(other.contractId);
  });
});
