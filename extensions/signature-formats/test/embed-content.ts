/** Embeds content in a detached CMS message. The signature stays valid: it covers the content's digest. */
import { Constructed, fromBER, OctetString, Sequence } from "asn1js";

/** @param detached a message in DER, with or without certificates */
export function embedContent(detached: Uint8Array, content: Uint8Array): Uint8Array {
  const { result } = fromBER(detached);
  const [, signedData] = childrenOf(result);
  const encapsulated = childrenOf(childrenOf(signedData)[0])[2];
  const octets = new OctetString({ valueHex: Uint8Array.from(content) });
  childrenOf(encapsulated).push(new Constructed({ idBlock: { tagClass: 3, tagNumber: 0 }, value: [octets] }));
  return new Uint8Array(result.toBER());
}

/** The elements in an element. */
export function childrenOf(block: unknown): unknown[] {
  if (block instanceof Constructed || block instanceof Sequence) return block.valueBlock.value;
  throw new TypeError("not a constructed element");
}
