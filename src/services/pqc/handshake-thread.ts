/**
 * The thread that records handshakes: of a TLS server and a TLS client, joined in memory. The keys, the
 * certificates and their CAs exist only here, and so do the key logs, which no other connection has.
 */
import { once } from "node:events";
import { type Duplex, duplexPair } from "node:stream";
import { connect, createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import { parentPort } from "node:worker_threads";
import { readGroup } from "../../crypto/tls-session.ts";
import { createAuthority, issueServerCertificate, openAuthority } from "../../crypto/x509.ts";
import { type HandshakeInput, handshakeGroups, type RecordedHandshake } from "./record-handshake.ts";

const serverName = "handshake.example";
const request = `GET / HTTP/1.1\r\nhost: ${serverName}\r\n\r\n`;
const response = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

parentPort?.on("message", async (input: HandshakeInput) => {
  parentPort?.postMessage(await recordHandshake(input));
});

async function recordHandshake({ group, certificate }: HandshakeInput): Promise<RecordedHandshake> {
  const now = new Date();
  const authority = createAuthority(certificate, now);
  const issued = issueServerCertificate(openAuthority(authority), { names: [serverName], days: 1, now });
  // As a browser does, the client offers all groups, with a key share of its preferred one.
  const groups = [group, ...handshakeGroups.filter((other) => other !== group)];
  const protocol = { minVersion: "TLSv1.3", ecdhCurve: groups.join(":") } as const;
  const ALPNProtocols = ["http/1.1"];
  const secureContext = createSecureContext({
    ...protocol,
    cert: issued.certificatePem,
    key: issued.secretKeyPem,
  });
  sendNoTickets(secureContext);

  const [clientEnd, serverEnd] = duplexPair();
  const server = new TLSSocket(serverEnd, { isServer: true, secureContext, ALPNProtocols });
  const ca = authority.certificatePem;
  const client = connect({ ...protocol, socket: clientEnd, ca, servername: serverName, ALPNProtocols });
  const keyLog: Buffer[] = [];
  client.on("keylog", (line: Buffer) => void keyLog.push(line));
  const records: RecordedHandshake["records"] = [];
  forEachRecord(serverEnd, (bytes) => void records.push({ fromClient: true, bytes }));
  forEachRecord(clientEnd, (bytes) => void records.push({ fromClient: false, bytes }));

  const closed = once(server, "close");
  server.once("data", () => server.end(response));
  client.resume().once("end", () => client.end());
  await once(client, "secureConnect");
  const agreed = { group: readGroup(server) ?? "", cipherSuite: client.getCipher().standardName };
  client.write(request);
  await closed;
  client.destroy();
  return { ...agreed, records, keyLog: Buffer.concat(keyLog).toString(), certificate: issued.certificatePem };
}

/**
 * Sends no tickets for resumption after the handshake. Node can only choose their keys; if there is no key,
 * OpenSSL omits them (SSL_CTX_set_tlsext_ticket_key_evp_cb, return value 0). Checked with Node 26.10.
 */
function sendNoTickets({ context }: SecureContext): void {
  const unused = Buffer.alloc(16);
  context.onticketkeycallback = () => [0, unused, unused, unused, unused];
  context.enableTicketKeyCallback();
}

/** Splits what arrives at one end into TLS records (RFC 8446, section 5.1). */
function forEachRecord(end: Duplex, take: (record: Uint8Array<ArrayBuffer>) => void): void {
  let rest = Buffer.alloc(0);
  end.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt16BE(3)) {
      const length = 5 + rest.readUInt16BE(3);
      // A copy: the buffer's memory may hold other data, and would be sent along.
      take(Uint8Array.from(rest.subarray(0, length)));
      rest = rest.subarray(length);
    }
  });
}
