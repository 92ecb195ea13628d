import { X509Certificate } from "node:crypto";
import { readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { serveProbe } from "../server/probe.ts";
import { request } from "../server/raw.ts";
import { shakeHands as shakeHandsWith } from "../server/tls-clients.ts";
import { endAfterAll } from "../support/at-end.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import {
  connectHttp2,
  describeEdge,
  eventually,
  makeCertificate,
  startBackend,
  startTestEdge,
  type TestEdge,
} from "./edge-tools.ts";

const groups = [
  { offers: "the hybrid, X25519 and P-384", curves: "X25519MLKEM768:X25519:P-384", group: "X25519MLKEM768" },
  { offers: "X25519 first and the hybrid last", curves: "X25519:X25519MLKEM768", group: "X25519MLKEM768" },
  { offers: "the hybrid alone", curves: "X25519MLKEM768", group: "X25519MLKEM768" },
  { offers: "P-384 first and X25519 last", curves: "P-384:X25519", group: "X25519" },
  { offers: "X25519 alone", curves: "X25519", group: "X25519" },
  { offers: "P-384 alone", curves: "P-384", group: "secp384r1", logged: "P-384" },
  { offers: "P-256 alone", curves: "P-256", group: "prime256v1", logged: "P-256" },
];

describeEdge("Envoy's TLS", () => {
  const atEnd = endAfterAll();
  let edge: TestEdge;
  beforeAll(async () => {
    const probe = await serveProbe({}, {}, { atEnd });
    edge = await startTestEdge({ backends: [`127.0.0.1:${probe.port}`] }, atEnd);
  }, 180_000);

  it.each(groups)("negotiates $group with clients that offer $offers, and logs it", async (row) => {
    const session = connectHttp2(edge, { ecdhCurve: row.curves });
    const requestId = `group-${row.curves}`;
    const answer = await request(session, { ":path": "/probe/look", "x-request-id": requestId });
    expect(answer.status).toBe(200);
    expect((session.socket as TLSSocket).getEphemeralKeyInfo()).toMatchObject({ name: row.group });
    expect(await edge.logOf(requestId)).toMatchObject({
      tlsVersion: "TLSv1.3",
      tlsGroup: row.logged ?? row.group,
      tlsCipher: expect.stringMatching(/^TLS_/),
    });
  });

  it.each([
    { what: "clients that offer only P-521", options: { ecdhCurve: "P-521" } },
    { what: "TLS 1.2", options: { maxVersion: "TLSv1.2" as const } },
  ])("rejects $what", async ({ options }) => {
    await expect(shakeHands(edge, options)).rejects.toMatchObject({
      code: expect.stringMatching(
        /^ERR_SSL_(TLSV1_ALERT_PROTOCOL_VERSION|SSL\/TLS_ALERT_HANDSHAKE_FAILURE)$/,
      ),
    });
  });

  it.each([
    { offered: ["h2", "http/1.1"], chosen: "h2" },
    { offered: ["http/1.1", "h2"], chosen: "h2" },
    { offered: ["http/1.1"], chosen: "http/1.1" },
  ])("chooses $chosen of $offered", async ({ offered, chosen }) => {
    const socket = await shakeHands(edge, { ALPNProtocols: offered });
    expect([socket.alpnProtocol, socket.getProtocol()]).toEqual([chosen, "TLSv1.3"]);
  });

  it("loads a renewed certificate without a restart, and keeps all connections", async () => {
    const session = connectHttp2(edge);
    expect((await request(session, { ":path": "/probe/look" })).status).toBe(200);
    const old = (await shakeHands(edge)).getPeerCertificate().fingerprint256;
    makeCertificate(edge.tlsDirectory);
    const renewed = fingerprintIn(edge.tlsDirectory);
    expect(renewed).not.toBe(old);
    await eventually(async () => {
      expect((await shakeHands(edge)).getPeerCertificate().fingerprint256).toBe(renewed);
    });
    expect((await request(session, { ":path": "/probe/look" })).status).toBe(200);
    expect(session.closed).toBe(false);
  });

  it("loads a certificate that is renewed like in Kubernetes, by a link to a different directory", async () => {
    const tlsDirectory = makeTemporaryDirectory();
    for (const version of ["1", "2"]) makeCertificate(join(tlsDirectory, version));
    symlinkSync("1", join(tlsDirectory, "current"));
    for (const file of ["gateway.crt", "gateway.key", "ca.crt"])
      symlinkSync(join("current", file), join(tlsDirectory, file));
    const linked = await startTestEdge({ backends: ["127.0.0.1:1"], tlsDirectory, areWell: false });
    const shown = async (): Promise<string> =>
      (await shakeHands(linked, { rejectUnauthorized: false })).getPeerCertificate().fingerprint256;
    expect(await shown()).toBe(fingerprintIn(join(tlsDirectory, "1")));
    symlinkSync("2", join(tlsDirectory, "next"));
    renameSync(join(tlsDirectory, "next"), join(tlsDirectory, "current"));
    const renewed = fingerprintIn(join(tlsDirectory, "2"));
    await eventually(async () => expect(await shown()).toBe(renewed));
  });
});

/**
 * Connects; the connection is closed at the end of the test.
 *
 * @throws the peer's TLS alert
 */
const shakeHands = ({ url, ca }: TestEdge, options?: ConnectionOptions) =>
  shakeHandsWith({ port: Number(new URL(url).port), ca: ca.toString() }, options);

function fingerprintIn(directory: string): string {
  return new X509Certificate(readFileSync(join(directory, "gateway.crt"))).fingerprint256;
}

const envoyFolder = join(import.meta.dirname, "../../envoy");

/** The lines that docs/deploy.md adds to each cluster. */
function readClusterTls(): string {
  const page = readFileSync(join(envoyFolder, "../docs/deploy.md"), "utf8");
  const [, lines = ""] = /^ {3}```yaml\n(.*?)^ {3}```/ms.exec(page) ?? [];
  return lines.replaceAll(/^ {3}/gm, "");
}

describeEdge("Envoy with the TLS lines of docs/deploy.md", () => {
  it.each([
    ["accepts the servers' certificate", "localhost", true],
    ["rejects a certificate with a different name", "qsp-servers", false],
  ])("%s", async (_what, name, areWell) => {
    const directory = makeTemporaryDirectory();
    makeCertificate(directory);
    const files = ["--tls-cert", join(directory, "gateway.crt"), "--tls-key", join(directory, "gateway.key")];
    const { authority } = await startBackend(onTestFinished, files);
    const tls = readClusterTls()
      .replace("data/tls/ca.crt", join(directory, "ca.crt"))
      .replace("exact: qsp-servers", `exact: ${name}`);
    const path = join(directory, "envoy.yaml");
    const template = readFileSync(join(envoyFolder, "envoy.yaml"), "utf8");
    writeFileSync(path, template.replaceAll(/^ {6}load_assignment:/gm, `${tls}$&`));
    const configuration = relative(envoyFolder, path);
    const edge = await startTestEdge({ backends: [authority], configuration, areWell });
    await eventually(async () =>
      expect(await request(connectHttp2(edge), { ":path": "/readyz" })).toMatchObject({
        status: areWell ? 200 : 503,
      }),
    );
  });
});
