/** The service packages. To add a core package, add one entry here; extensions declare their own packages. */
import type { DescFile } from "@bufbuild/protobuf";
import { file_blockchain_blockchain_service } from "#gen/blockchain/blockchain_service_pb.ts";
import { file_dapp_dapp_service } from "#gen/dapp/dapp_service_pb.ts";
import { file_defi_defi_service } from "#gen/defi/defi_service_pb.ts";
import { file_iot_iot_service } from "#gen/iot/iot_service_pb.ts";
import { file_kms_kms_service } from "#gen/kms/kms_service_pb.ts";
import { file_nft_nft_service } from "#gen/nft/nft_service_pb.ts";
import { file_pqc_identity_log_service } from "#gen/pqc/identity_log_service_pb.ts";
import { file_pqc_pqc_service } from "#gen/pqc/pqc_service_pb.ts";
import { file_pqc_token_service } from "#gen/pqc/token_service_pb.ts";
import { file_vpn_vpn_service } from "#gen/vpn/vpn_service_pb.ts";
import { file_wallet_wallet_service } from "#gen/wallet/wallet_service_pb.ts";
import { findScope, metricsScope, type ServiceProfiles } from "../calls/service-profile.ts";
import type { RecordTables } from "../records/table-declaration.ts";
import type { ServiceModule } from "./service-module.ts";
import { entriesVerification, type LogVerification } from "./verify-logs.ts";

/** A service package. Server, clients and descriptions are built from these. */
export interface ServicePackage {
  /**
   * The proto package name, for `--services`. The folder has the same name, with a hyphen for each dot.
   * Packages built on third-party protos choose a name.
   */
  readonly name: string;
  /** Protos of the package; clients and descriptions need nothing else. */
  readonly files: readonly DescFile[];
  /** Loads the implementation and the examples. */
  readonly load: () => Promise<ServiceModule>;
  /** Whether it keeps state in memory that all calls need, so that one server must answer all of them. */
  readonly hasState?: boolean;
  /**
   * Whether most of its calls write to the store, so that health checks report its services as not serving
   * while the store is read-only.
   */
  readonly writes?: boolean;
  /** For an extension's package, the core package that it follows in lists; the last one if omitted. */
  readonly after?: string;
  /** Facts that third-party protos do not state, such as access rules. */
  readonly profiles?: ServiceProfiles;
  /** Loads an extension package's tables, if it has any. The core's tables are in src/open-store.ts. */
  readonly tables?: () => Promise<RecordTables>;
  /** Loads the verification of logs and of data derived from them. At most one extension package has one. */
  readonly logVerification?: () => Promise<LogVerification>;
}

export type LoadPackages = () => Promise<readonly ServicePackage[]>;

/** Returns all packages: the core's, with those from extensions inserted at their places. */
export async function collectPackages(
  extensions: readonly { readonly packages?: LoadPackages }[],
): Promise<readonly ServicePackage[]> {
  const all = [...servicePackages];
  const added = await Promise.all(extensions.map(async ({ packages }) => (await packages?.()) ?? []));
  for (const one of added.flat()) {
    // Packages that follow the same package keep their order.
    const index = all.findLastIndex(
      ({ name, after }) => one.after === undefined || [name, after].includes(one.after),
    );
    if (index < 0) throw new Error(`${one.name} follows ${one.after}, which is not a package`);
    all.splice(index + 1, 0, one);
  }
  return all;
}

export function collectProfiles(packages: readonly ServicePackage[]): ServiceProfiles {
  return Object.assign({}, ...packages.map(({ profiles }) => profiles));
}

/**
 * Loads the log verification.
 *
 * @param packages every package in the program, even those that this server does not serve
 */
export async function loadLogVerification(packages: readonly ServicePackage[]): Promise<LogVerification> {
  const [load] = packages.flatMap(({ logVerification = [] }) => logVerification);
  return load === undefined ? entriesVerification : load();
}

/** Lists services to report as not serving while the store cannot be written. */
export function listWriting(packages: readonly ServicePackage[]): string[] {
  const services = packages
    .filter(({ writes }) => writes)
    .flatMap(({ files }) => files.flatMap((file) => file.services));
  return services.map(({ typeName }) => typeName);
}

/** Lists the scopes that calls and pages require, sorted. */
export function listScopes(packages: readonly ServicePackage[]): string[] {
  const profiles = collectProfiles(packages);
  const services = packages.flatMap(({ files }) => files.flatMap((file) => file.services));
  const scopes = services.flatMap(({ methods }) => methods.map((method) => findScope(method, profiles)));
  return [...new Set([...scopes, metricsScope])].filter((scope) => scope !== "").sort();
}

/** Describes a core package whose calls mostly write to the store. */
const writing = (name: string, file: DescFile, load: ServicePackage["load"]): ServicePackage => ({
  name,
  files: [file],
  load,
  writes: true,
});

/** The core packages, in display order. */
export const servicePackages: readonly ServicePackage[] = [
  {
    name: "pqc",
    files: [file_pqc_pqc_service, file_pqc_token_service, file_pqc_identity_log_service],
    load: () => import("./pqc/module.ts"),
  },
  writing("kms", file_kms_kms_service, () => import("./kms/module.ts")),
  writing("iot", file_iot_iot_service, () => import("./iot/module.ts")),
  { ...writing("vpn", file_vpn_vpn_service, () => import("./vpn/module.ts")), hasState: true },
  writing("dapp", file_dapp_dapp_service, () => import("./dapp/module.ts")),
  writing("wallet", file_wallet_wallet_service, () => import("./wallet/module.ts")),
  writing("defi", file_defi_defi_service, () => import("./defi/module.ts")),
  writing("blockchain", file_blockchain_blockchain_service, () => import("./blockchain/module.ts")),
  writing("nft", file_nft_nft_service, () => import("./nft/module.ts")),
];
