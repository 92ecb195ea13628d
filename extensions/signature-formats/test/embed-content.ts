/** Puts content into a detached CMS message, whose signature stays valid: it covers the digest of the content. */
import { Constructed, fromBER, OctetString, Sequence } from "asn1js";

/** @param detached in DER, without certificates or with them */
export function embedContent(detached: Uint8Array, content: Uint8Array): Uint8Array {
  const { result } = fromBER(detached);
  const [, signedData] = childrenOf(result);
  const encapsulated = childrenOf(childrenOf(signedData)[0])[2];
  const octets = new OctetString({ valueHex: Uint8Array.from(content) });
  childrenOf(encapsulated).push(new Constructed({ idBlock: { tagClass: 3, tagNumber: 0 }, value: [octets] }));
  return new Uint8Array(result.toBER());
}

function childrenOf(block: unknown): unknown[] {
  if (block instanceof Constructed || block instanceof Sequence) return block.valueBlock.value;
  throw new TypeError("not a constructed element");
}
