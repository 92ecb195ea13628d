/** Generates docs/access.md: the roles that may make each call. */
import { type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.ts";
import { findScope, isAlwaysRefused, type ServiceProfiles } from "../calls/service-profile.ts";
import { rolesFor } from "../server/interceptors/access.ts";
import { collectProfiles, type ServicePackage } from "../services/registry.ts";
import { escapeBars, renderCode, renderTable } from "./markdown.ts";

export function renderAccessPage(packages: readonly ServicePackage[]): string {
  const profiles = collectProfiles(packages);
  const services = packages.flatMap(({ files }) => files.flatMap((file) => file.services));
  return [introduction, ...services.map((service) => renderService(service, profiles))].join("\n");
}

function renderService({ typeName, methods }: DescService, profiles: ServiceProfiles): string {
  const rows = methods.map((method) => [
    renderCode(method.name),
    renderCode(findRestPath(method)),
    describeCallers(method, "open", profiles),
    describeCallers(method, "token", profiles),
    isAlwaysRefused(method, profiles) ? "" : renderCode(findScope(method, profiles)),
  ]);
  const headers = ["RPC", "REST", "`--auth open`", "`--auth token`", "scope"];
  return `## ${typeName}\n\n${renderTable(headers, rows)}\n`;
}

function describeCallers(method: DescMethod, mode: "open" | "token", profiles: ServiceProfiles): string {
  if (isAlwaysRefused(method, profiles)) return "not supported";
  return escapeBars(rolesFor(method, mode, profiles)?.join(", ") ?? "anyone");
}

function findRestPath(method: DescMethod): string {
  const { pattern } = getOption(method, http);
  if (pattern.case === undefined) return "";
  return pattern.case === "custom"
    ? `${pattern.value.kind} ${pattern.value.path}`
    : `${pattern.case.toUpperCase()} ${pattern.value}`;
}

const introduction = `<!-- Written by \`npm run docs\` from the options qsp.access and qsp.scope of the protos, and from src/services/registry.ts. -->

# Who may call

This page lists the role that each call requires.

\`--auth open\` (see [settings](settings.md)) lets anyone call; only some calls require a token. It is the default for a store without users and clients. With \`--auth token\`, every call that is not public requires a token from a user with one of these roles. Users see only their own records; an admin sees all. A \`device\` calls with the token that \`Authenticate\` returns, and may send only its own telemetry and firmware reports. An OAuth 2 access token (see [extensions](extensions.md)) also requires the scope in the last column. A call that lets its service sign with a key in \`kms\`, or creates one there, also requires \`kms.sign\` or \`kms.admin\`. Health checks and reflection (\`grpc.*\`) are open to anyone.
`;
