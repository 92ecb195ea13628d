import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  getOption,
  hasOption,
  ScalarType,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { isReflectList, isReflectMap, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import {
  type FieldRules,
  field as fieldRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, it } from "vitest";
import { Access } from "#gen/qsp/access_pb.ts";
import { findAccess } from "../../src/calls/service-profile.ts";
import { findMessageLimit } from "../../src/message-limits/message-limit.ts";
import { collectProfiles } from "../../src/services/registry.ts";
import { EverythingSchema } from "../gen/testing/kinds_pb.ts";
import { loadPackages } from "../support/whole-program.ts";

const generalBytes = 4 * 1024 * 1024;
const stepBytes = 64 * 1024;
const packages = await loadPackages();
const profiles = collectProfiles(packages);
const methods = packages
  .flatMap(({ files }) => files.flatMap(({ services }) => services))
  .flatMap((service) => service.methods);
const limitOf = (method: DescMethod): number => findMessageLimit(method, generalBytes, profiles);
const named = (list: readonly DescMethod[]): [name: string, method: DescMethod][] =>
  list.map((method) => [`${method.parent.typeName}/${method.name}`, method]);
/** Public calls that need more: signed data. */
const larger: Record<string, number> = { "pqc.TokenService/VerifyToken": generalBytes };

const publicMethods = methods.filter((method) => findAccess(method, profiles) === Access.PUBLIC);
it.each(named(publicMethods))("the public call %s takes 64 KiB, unless a row has more", (name, method) => {
  const profile = profiles[method.parent.typeName]?.rpcs?.[method.name];
  expect(limitOf(method)).toBe(larger[name] ?? profile?.maxBytes ?? stepBytes);
});

describe("the message limit of a call", () => {
  const rpcs = ["SignData", "Sign", "Verify", "BatchSign", "SignStream", "UpdateFirmware", "DeployContract"];
  it.each(rpcs)("is the general limit for %s, whose data has any size", (rpc) => {
    const found = methods.filter(({ name, parent }) => name === rpc && parent.typeName !== "nft.NftService");
    expect(new Set(found.map(limitOf))).toEqual(new Set([generalBytes]));
  });

  it("follows the rule of the largest field: a packet of 64 KiB fits as base64", () => {
    const found = methods.find(({ name }) => name === "ReceivePacket");
    expect(found && limitOf(found)).toBe(2 * stepBytes);
  });

  it("is the general limit for a recursive message", () => {
    const [method] = methods;
    if (method === undefined) throw new Error("no method");
    expect(findMessageLimit({ ...method, input: EverythingSchema }, generalBytes)).toBe(generalBytes);
  });

  it("never exceeds the general limit", () => {
    const limits = methods.map((method) => findMessageLimit(method, 1000, profiles));
    expect(new Set(limits)).toEqual(new Set([1000]));
  });
});

describe("the largest message that the rules allow fits the limit of", () => {
  const bounded = methods.filter((method) => {
    return limitOf(method) < generalBytes && !method.input.typeName.startsWith("envoy.");
  });

  it.each(named(bounded))("%s, in both encodings, with any texts", (_name, method) => {
    for (const character of ["x", "€"]) {
      const { message } = fill(method.input, character);
      expect(toBinary(method.input, message).length).toBeLessThanOrEqual(limitOf(method));
      // As a client that escapes non-ASCII texts writes it.
      const json = toJsonString(method.input, message).replaceAll("€", "\\u20ac");
      expect(json.length).toBeLessThanOrEqual(limitOf(method));
    }
  });
});

/** Fills every field as far as its rules allow. The last member of a oneof stays. */
function fill(desc: DescMessage, character: string): ReflectMessage {
  const message = reflect(desc, create(desc));
  for (const field of desc.fields) {
    const rules = hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
    const { type } = rules ?? {};
    if (field.fieldKind === "list") {
      const { maxItems = 0n, items = undefined } = type?.case === "repeated" ? type.value : {};
      const list = message.get(field);
      for (let i = 0; i < maxItems && isReflectList(list); i += 1) list.add(largest(field, items, character));
    } else if (field.fieldKind === "map") {
      const { maxPairs = 0n, values = undefined } = type?.case === "map" ? type.value : {};
      const map = message.get(field);
      for (let i = 0; i < maxPairs && isReflectMap(map); i += 1)
        map.set(`${"k".repeat(60)}${i}`, largest(field, values, character));
    } else message.set(field, largest(field, rules, character));
  }
  return message;
}

function largest(field: DescField, rules: FieldRules | undefined, character: string): unknown {
  const { type } = rules ?? {};
  if (field.message !== undefined) return fill(field.message, character);
  if (field.enum !== undefined) return field.enum.values.at(-1)?.number ?? 0;
  switch (field.scalar) {
    case ScalarType.STRING: {
      if (type?.case !== "string") return "";
      const { len, maxLen, maxBytes } = type.value;
      // Where the rules count bytes, the text is a token or a URL.
      if (maxBytes > 0n) return "x".repeat(Number(maxBytes));
      return character.repeat(Number(len || maxLen));
    }
    case ScalarType.BYTES:
      return new Uint8Array(type?.case === "bytes" ? Number(type.value.len || type.value.maxLen) : 0);
    case ScalarType.BOOL:
      return true;
    case ScalarType.DOUBLE:
      return 1.5;
    case ScalarType.INT64:
    case ScalarType.UINT64:
      // The last second of the year 9999, which is a valid time.
      return 253_402_300_799n;
    default:
      return 999_999_999;
  }
}
