/** Logs of servers that share a port, and the log metrics. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import { startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { awaitSize, startLogServer, writeUses } from "./log-server.ts";

describe("a log's metrics", { timeout: 180_000 }, () => {
  it("count its entries, published entries and cosignatures, and measure the signing time", async () => {
    const server = await startLogServer();
    await writeUses(server, 3);
    await awaitSize(server.url, 3);
    const text = await (await fetch(`${server.url}/metrics`)).text();
    expect(text).toContain('qsp_log_entries{log="audit"} 3\n');
    expect(text).toContain('qsp_log_published_entries{log="audit"} 3\n');
    expect(text).toMatch(/qsp_log_sign_seconds_count\{log="audit"\} [1-9]/);
    expect(text).toContain("# TYPE qsp_log_cosignatures_total counter");
  });
});

describe("two servers on one port", { timeout: 180_000 }, () => {
  it("have one log with both servers' entries", async () => {
    const dataDir = makeTemporaryDirectory();
    const args = ["--reuse-port", "--services", "kms,tlog"];
    const server = await startServer({ dataDir, args });
    const other = await startServer({ dataDir, args: [...args, "--port", new URL(server.url).port] });
    try {
      const writers = Array.from({ length: 12 }, () =>
        createClient(KmsService, createGrpcTransport({ baseUrl: `http://${server.authority}` })),
      );
      await Promise.all(writers.map((kms) => writeUses({ kms }, 30)));
      const { root } = await awaitSize(`http://${server.authority}`, 360);
      const logs = createClient(LogService, createGrpcTransport({ baseUrl: `http://${server.authority}` }));
      const proof = await logs.getInclusionProof({ log: "audit", leafIndex: 359, treeSize: 360 });
      expect(Uint8Array.from(proof.rootHash)).toEqual(root);
      expect(await writers[0]?.verifyAuditLog({})).toMatchObject({ valid: true, entries: 360 });
    } finally {
      await Promise.all([server.stop(), other.stop()]);
    }
  });
});
