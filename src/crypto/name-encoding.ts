/** Encodes certificate names in ASN.1 (RFC 5280, sections 4.1.2.4 and 4.2.1.6). */
import {
  IA5String,
  ObjectIdentifier,
  OctetString,
  PrintableString,
  Sequence,
  Set as SetOf,
  Utf8String,
} from "asn1js";
import { GeneralName, GeneralNames, RelativeDistinguishedNames } from "pkijs";
import { type AlternativeName, type AlternativeNameKind, toAddressBytes } from "./alternative-names.ts";
import { attributeRules, type DistinguishedName } from "./distinguished-name.ts";

/** GeneralName tags. */
export const generalNameTags = { email: 1, dns: 2, uri: 6, ip: 7 } as const satisfies Record<
  AlternativeNameKind,
  number
>;

const stringTypes = { utf8: Utf8String, printable: PrintableString, ia5: IA5String };

/** Encodes a distinguished name, with each attribute as a separate part. */
export function encodeDistinguishedName(name: DistinguishedName): RelativeDistinguishedNames {
  const parts = name.map(({ type, value }) => {
    const { oid, encoding } = attributeRules[type];
    const attribute = [new ObjectIdentifier({ value: oid }), new stringTypes[encoding]({ value })];
    return new SetOf({ value: [new Sequence({ value: attribute })] });
  });
  // Given typesAndValues, pkijs would write all attributes as one part.
  return new RelativeDistinguishedNames({ valueBeforeDecode: new Sequence({ value: parts }).toBER() });
}

/** Encodes names for the subjectAltName extension. */
export function encodeAlternativeNames(names: readonly AlternativeName[]): GeneralNames {
  return new GeneralNames({ names: names.map(encodeAlternativeName) });
}

function encodeAlternativeName({ kind, value }: AlternativeName): GeneralName {
  if (kind !== "ip") return new GeneralName({ type: generalNameTags[kind], value });
  return new GeneralName({
    type: generalNameTags.ip,
    value: new OctetString({ valueHex: toAddressBytes(value) }),
  });
}
