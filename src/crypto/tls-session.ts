/** Reads what Node does not report about a TLS connection. Checked with Node 26.10 and OpenSSL 3.5.8. */
import type { TLSSocket } from "node:tls";
import { nameGroup } from "./tls-names.ts";

/** `kex_group [19] EXPLICIT UINT32` in OpenSSL's SSL_SESSION (ssl/ssl_asn1.c). */
const groupTag = 0xb3;

/**
 * Returns the key exchange group of a server's connection, by its IANA name. getEphemeralKeyInfo works only for
 * clients, but OpenSSL writes the group of every handshake into the session, even of a resumption.
 *
 * @returns undefined if the connection has closed
 */
export function readGroup(socket: Pick<TLSSocket, "getSession">): string | undefined {
  // The session contains the resumption secret.
  const session = socket.getSession();
  if (!session) return undefined;
  const group = findGroup(session);
  session.fill(0);
  return group === undefined ? undefined : nameGroup(group);
}

function findGroup(session: Buffer): number | undefined {
  for (let at = readElement(session, 0).contentAt; at < session.length; ) {
    const { contentAt, end } = readElement(session, at);
    if (session[at] === groupTag) {
      const integer = readElement(session, contentAt);
      return session.readUIntBE(integer.contentAt, integer.end - integer.contentAt);
    }
    at = end;
  }
  return undefined;
}

/** Finds the content of a DER element whose tag has one byte (ITU-T X.690, section 8.1). */
function readElement(document: Buffer, at: number): { contentAt: number; end: number } {
  const first = document.readUInt8(at + 1);
  if (first < 0x80) return { contentAt: at + 2, end: at + 2 + first };
  const contentAt = at + 2 + (first & 0x7f);
  return { contentAt, end: contentAt + document.readUIntBE(at + 2, first & 0x7f) };
}
