/**
 * Reads recordings with tshark, as data for a test: fields in order, as a name and the bytes in hexadecimal.
 *
 *     node ../record/read-with-tshark.ts < go.json > go.tshark.json
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { tsharkFields } from "./tshark-fields.ts";

interface Recorded {
  readonly name: string;
  readonly records: readonly { readonly fromClient: boolean; readonly bytes: string }[];
  readonly keyLog: string;
}

const folder = mkdtempSync(join(tmpdir(), "tshark-"));
const readings = ((await json(process.stdin)) as Recorded[]).map(read);
rmSync(folder, { recursive: true });
process.stdout.write(`${JSON.stringify(readings, undefined, 1)}\n`);

function read({ name, records, keyLog }: Recorded) {
  const [capture, keys] = [join(folder, "capture.pcap"), join(folder, "keys.log")];
  writeFileSync(capture, writeCapture(records));
  writeFileSync(keys, keyLog);
  const options = ["-r", capture, "-o", `tls.keylog_file:${keys}`, "-T", "pdml"];
  const pdml = execFileSync("tshark", options, { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  const fields = [...pdml.matchAll(/<field name="((?:tls|x509\w*)[\w.]+)"[^>]*? value="([0-9a-f]+)"/g)];
  const known = fields.filter(([, field = ""]) => field in tsharkFields);
  return { name, fields: known.map(([, field, value]) => `${field} ${value}`) };
}

/** A capture file (draft-ietf-opsawg-pcap) of IPv4 packets, without checksums. */
function writeCapture(records: Recorded["records"]): Buffer {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(0xa1b2c3d4, 0);
  header.writeUInt16LE(2, 4);
  header.writeUInt16LE(4, 6);
  header.writeUInt32LE(262_144, 16);
  header.writeUInt32LE(228, 20);
  const sent = { client: 1, server: 1 };
  const packets = records.map(({ fromClient, bytes }) => {
    const payload = Buffer.from(bytes, "base64");
    const [from, to] = fromClient ? (["client", "server"] as const) : (["server", "client"] as const);
    const packet = Buffer.alloc(16 + 40);
    const length = 40 + payload.length;
    packet.writeUInt32LE(length, 8);
    packet.writeUInt32LE(length, 12);
    packet.set([0x45, 0, length >> 8, length & 0xff, 0, 0, 0x40, 0, 64, 6], 16);
    packet.set(fromClient ? [10, 0, 0, 1, 10, 0, 0, 2] : [10, 0, 0, 2, 10, 0, 0, 1], 28);
    packet.writeUInt16BE(fromClient ? 50_000 : 443, 36);
    packet.writeUInt16BE(fromClient ? 443 : 50_000, 38);
    packet.writeUInt32BE(sent[from], 40);
    packet.writeUInt32BE(sent[to], 44);
    packet.set([0x50, 0x18, 0xff, 0xff], 48);
    sent[from] += payload.length;
    return Buffer.concat([packet, payload]);
  });
  return Buffer.concat([header, ...packets]);
}
