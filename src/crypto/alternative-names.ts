/** Subject alternative names (RFC 5280, section 4.2.1.6) and the valid forms of each kind. */
import { isIP } from "node:net";
import { CryptoError } from "./crypto-error.ts";
import { isHostName } from "./host-name.ts";

/** The kinds of names, in certificate order. */
export const alternativeNameKinds = ["dns", "ip", "email", "uri"] as const;

export type AlternativeNameKind = (typeof alternativeNameKinds)[number];

/** One name; its value is ASCII. */
export interface AlternativeName {
  readonly kind: AlternativeNameKind;
  readonly value: string;
}

/** Maximum number of names in a certificate. */
export const maxAlternativeNames = 100;

/** RFC 5321, section 4.5.3.1.3: a path of 256 characters, minus its brackets. */
const maxEmailCharacters = 254;
/** RFC 5321, section 4.5.3.1.1. */
const maxLocalPartCharacters = 64;
const maxUriCharacters = 2048;

/** RFC 5322, section 3.2.3: dot-atom. */
const dotAtom = /^[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*$/;
/** The characters of RFC 3986, after a scheme. */
const absoluteUri = /^[A-Za-z][A-Za-z0-9+.-]*:([\w.~:/?#[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$/;

const readers: Readonly<Record<AlternativeNameKind, (text: string) => string | undefined>> = {
  dns(text) {
    const name = text.toLowerCase();
    return isHostName(name) && isIP(name) === 0 ? name : undefined;
  },
  ip: readAddress,
  email(text) {
    const at = text.lastIndexOf("@");
    const [localPart, host] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)];
    const isValid =
      text.length <= maxEmailCharacters &&
      localPart.length <= maxLocalPartCharacters &&
      dotAtom.test(localPart) &&
      !host.startsWith("*") &&
      isHostName(host.toLowerCase());
    return isValid ? text : undefined;
  },
  uri(text) {
    if (text.length > maxUriCharacters || !absoluteUri.test(text) || !URL.canParse(text)) return undefined;
    // RFC 5280, section 4.2.1.6: an authority has a host.
    const hasAuthority = text.slice(text.indexOf(":") + 1).startsWith("//");
    return hasAuthority && new URL(text).hostname === "" ? undefined : text;
  },
};

const forms: Readonly<Record<AlternativeNameKind, string>> = {
  dns: "a host name of ASCII letters such as example.com, or a wildcard such as *.example.com",
  ip: "an IPv4 or IPv6 address, without a zone",
  email: "an address such as ada@example.com, in ASCII",
  uri: `an absolute URI (RFC 3986) of at most ${maxUriCharacters} characters, such as https://example.com/release`,
};

/**
 * Parses a name in the form of its kind.
 *
 * @returns host names in lower case, IPv6 addresses in their shortest form, other names unchanged
 * @throws INVALID_ARGUMENT, quoting the name and stating the valid form
 */
export function readAlternativeName(kind: AlternativeNameKind, text: string): AlternativeName {
  const value = readers[kind](text);
  if (value !== undefined) return { kind, value };
  throw new CryptoError("INVALID_ARGUMENT", `${JSON.stringify(text)} is not ${forms[kind]}`);
}

/** Formats a name for people: "dns:example.com". */
export function formatAlternativeName({ kind, value }: AlternativeName): string {
  return `${kind}:${value}`;
}

/**
 * Parses the output of `formatAlternativeName`.
 *
 * @throws INVALID_ARGUMENT
 */
export function parseAlternativeName(text: string): AlternativeName {
  const at = text.indexOf(":");
  const kind = alternativeNameKinds.find((candidate) => candidate === text.slice(0, at));
  if (kind !== undefined) return readAlternativeName(kind, text.slice(at + 1));
  const kinds = alternativeNameKinds.map((each) => `${each}:`).join(", ");
  throw new CryptoError("INVALID_ARGUMENT", `${JSON.stringify(text)} does not start with one of ${kinds}`);
}

/**
 * Converts an address to its 4 or 16 bytes.
 *
 * @param address as `readAlternativeName` returns it
 */
export function toAddressBytes(address: string): Uint8Array {
  if (isIP(address) === 4) return Uint8Array.from(address.split("."), Number);
  // A URL writes an IPv6 address as hexadecimal groups, with at most one "::" for zeros.
  const [head = "", tail = ""] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const [first, last] = [head, tail].map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(8 - (first?.length ?? 0) - (last?.length ?? 0)).fill("0");
  const groups = [...(first ?? []), ...zeros, ...(last ?? [])];
  return Uint8Array.fromHex(groups.map((group) => group.padStart(4, "0")).join(""));
}

/**
 * Converts 4 or 16 bytes to an address.
 *
 * @returns undefined for any other length
 */
export function toAddress(bytes: Uint8Array): string | undefined {
  if (bytes.length === 4) return [...bytes].join(".");
  if (bytes.length !== 16) return undefined;
  return readAddress(bytes.toHex().replaceAll(/(....)(?!$)/g, "$1:"));
}

/**
 * Reads an IP address. A zone, as in fe80::1%eth0, is not part of it and is not allowed in a certificate.
 *
 * @returns an IPv6 address in its shortest form; undefined for any other text
 */
export function readAddress(text: string): string | undefined {
  const family = text.includes("%") ? 0 : isIP(text);
  if (family === 6) return new URL(`http://[${text}]`).hostname.slice(1, -1);
  return family === 4 ? text : undefined;
}
