/** Reads what Node does not report about a TLS connection. Checked with Node 26.10 and OpenSSL 3.5.8. */
import type { TLSSocket } from "node:tls";
import { readChildren } from "./der.ts";
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
  const integer = readChildren(session)
    .find(({ tag }) => tag === groupTag)
    ?.content.subarray(2);
  const group = integer?.reduce((sum, byte) => sum * 256 + byte, 0);
  session.fill(0);
  return group === undefined ? undefined : nameGroup(group);
}
