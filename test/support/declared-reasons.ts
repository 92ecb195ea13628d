/** Checks that servers refuse calls only with reasons declared in their protos. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { type Logger, pino } from "pino";
import { afterAll, expect } from "vitest";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import { findReasons, isAlwaysRefused, type ServiceProfiles } from "../../src/calls/service-profile.ts";
import { collectProfiles, type ServicePackage } from "../../src/services/registry.ts";

/** An RPC and the reasons that it declares. */
export interface DeclaredReasons {
  readonly method: DescMethod;
  /** The name in logs: "kms.KmsService/Sign". */
  readonly name: string;
  readonly reasons: readonly string[];
  /** Reasons that follow from its other options. */
  readonly implied: readonly string[];
  readonly profiles: ServiceProfiles;
}

/** Lists the RPCs of a server's packages, with their reasons. */
export function listDeclared(packages: readonly ServicePackage[]): DeclaredReasons[] {
  const profiles = collectProfiles(packages);
  return packages
    .flatMap(({ files }) => files.flatMap(({ services }) => services.flatMap(({ methods }) => methods)))
    .filter((method) => !isAlwaysRefused(method, profiles))
    .map((method) => ({
      method,
      name: `${method.parent.typeName}/${method.name}`,
      reasons: findReasons(method, profiles),
      // Keys have a quota, and so do most records that a call creates.
      implied: getOption(method, idempotency_key) ? ["QUOTA_EXCEEDED"] : [],
      profiles,
    }));
}

const undeclared = new Set<string>();

// In every file that starts a server with this log.
afterAll(() => {
  expect([...undeclared], "refusals that their RPC does not declare with qsp.reason").toEqual([]);
});

/**
 * Creates a server log. The tests of the file fail if a call is refused with a reason that other RPCs declare but
 * this one does not.
 */
export function watchReasons(packages: readonly ServicePackage[]): Logger {
  const declared = new Map(
    listDeclared(packages).map(({ name, reasons, implied }) => [name, [...reasons, ...implied]]),
  );
  const ofSome = new Set([...declared.values()].flat());
  const write = (line: string): void => {
    const { method, reason } = JSON.parse(line);
    // Lines without an RPC report other events.
    const own = declared.get(method);
    if (own && ofSome.has(reason) && !own.includes(reason)) undeclared.add(`${method}: ${reason}`);
  };
  return pino({ level: "debug" }, { write });
}
