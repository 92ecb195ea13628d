/** Watches how servers refuse calls: with reasons that their protos declare. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { type Logger, pino } from "pino";
import { afterAll, expect } from "vitest";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import { findReasons, isAlwaysRefused, type ServiceProfiles } from "../../src/calls/service-profile.ts";
import { collectProfiles, type ServicePackage } from "../../src/services/registry.ts";

/** An RPC, and the reasons that it declares. */
export interface DeclaredReasons {
  readonly method: DescMethod;
  /** As logs name it: "kms.KmsService/Sign". */
  readonly name: string;
  readonly reasons: readonly string[];
  /** Those that follow from its other options. */
  readonly implied: readonly string[];
  readonly profiles: ServiceProfiles;
}

/** Lists the RPCs of packages that a server has, with their reasons. */
export function listDeclared(packages: readonly ServicePackage[]): DeclaredReasons[] {
  const profiles = collectProfiles(packages);
  return packages
    .flatMap(({ files }) => files.flatMap(({ services }) => services.flatMap(({ methods }) => methods)))
    .filter((method) => !isAlwaysRefused(method, profiles))
    .map((method) => ({
      method,
      name: `${method.parent.typeName}/${method.name}`,
      reasons: findReasons(method, profiles),
      // Its keys have a quota, and so have most of the records that it creates.
      implied: getOption(method, idempotency_key) ? ["QUOTA_EXCEEDED"] : [],
      profiles,
    }));
}

const undeclared = new Set<string>();

// In every file that starts a server with such a log.
afterAll(() => {
  expect([...undeclared], "refusals whose RPC has no option qsp.reason for them").toEqual([]);
});

/**
 * Creates the log of a server. The tests of its file fail if a call is refused with a reason that other RPCs declare,
 * and this one does not.
 */
export function watchReasons(packages: readonly ServicePackage[]): Logger {
  const declared = new Map(
    listDeclared(packages).map(({ name, reasons, implied }) => [name, [...reasons, ...implied]]),
  );
  const ofSome = new Set([...declared.values()].flat());
  const write = (line: string): void => {
    const { method, reason } = JSON.parse(line);
    // A line without an RPC is of something else that happened.
    const own = declared.get(method);
    if (own && ofSome.has(reason) && !own.includes(reason)) undeclared.add(`${method}: ${reason}`);
  };
  return pino({ level: "debug" }, { write });
}
