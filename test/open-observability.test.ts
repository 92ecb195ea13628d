import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, it } from "vitest";
import { refuse } from "../src/errors.ts";
import { observeBackground } from "../src/open-observability.ts";
import { createMetrics } from "../src/server/metrics.ts";

function observe() {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(line, _encoding, done) {
      lines.push(JSON.parse(String(line)));
      done();
    },
  });
  const metrics = createMetrics();
  return { background: observeBackground(metrics, pino(stream)), lines, expose: metrics.expose };
}

it("logs a failure of background work with its key and operation, and counts from 0", async () => {
  const { background, lines, expose } = observe();
  background.started("kms_destroy");
  expect((await expose()).text).toContain('qsp_background_failures_total{work="kms_destroy"} 0');
  const about = { keyId: "key-1", operation: "DESTROY" };
  background.failed({ work: "kms_destroy", error: new Error("the record is damaged"), about });
  expect(lines).toEqual([
    expect.objectContaining({
      level: 50,
      work: "kms_destroy",
      ...about,
      err: expect.objectContaining({ message: "the record is damaged" }),
    }),
  ]);
  expect((await expose()).text).toContain('qsp_background_failures_total{work="kms_destroy"} 1');
});

it("logs a refusal of background work in one short line, with its reason", () => {
  const { background, lines } = observe();
  const error = refuse("KEY_STATE_INVALID", "key key-1 is DISABLED", { keyId: "key-1" });
  background.failed({ work: "tuf_renew", error, about: { repository: "plant" } });
  const { time, pid, hostname, ...line } = lines[0] ?? {};
  expect(line).toEqual({
    ...{ level: 50, work: "tuf_renew", repository: "plant", reason: "KEY_STATE_INVALID" },
    message: "key key-1 is DISABLED",
    msg: "background work failed and will be retried",
  });
});

it("counts a repeated failure without logging it", async () => {
  const { background, lines, expose } = observe();
  background.failed({ work: "issuer_keys", error: new Error("no store"), isRepeated: true });
  expect(lines).toEqual([]);
  expect((await expose()).text).toContain('qsp_background_failures_total{work="issuer_keys"} 1');
});

it("exposes overdue work", async () => {
  const { background, expose } = observe();
  background.overdue("kms_rotate", 3, 90.5);
  const { text } = await expose();
  expect(text).toContain('qsp_overdue_work{work="kms_rotate"} 3');
  expect(text).toContain('qsp_overdue_work_seconds{work="kms_rotate"} 90.5');
});

it("exposes the build, its commit and the Node.js version", async () => {
  const metrics = createMetrics();
  metrics.nameBuild({ version: "1.2.3", commit: "0123456789ab" });
  const { node } = process.versions;
  expect((await metrics.expose()).text).toContain(
    `qsp_build_info{version="1.2.3",commit="0123456789ab",node="${node}"} 1`,
  );
});
