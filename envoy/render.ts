/** Replaces addresses and paths in the configurations of this folder, and nothing else. */
import { parse, stringify } from "yaml";

/** Values to insert into a configuration. */
export interface EdgeSettings {
  /** The address that the listeners bind to. */
  readonly address: string;
  /** The port of the first listener; the others get the following ports. With 0, each picks a free one. */
  readonly port: number;
  readonly adminPort: number;
  /** Servers for all clusters, as "host:port", or servers by cluster name. */
  readonly backends: readonly string[] | Readonly<Record<string, readonly string[]>>;
  /** The path of certificate.yaml. */
  readonly certificateConfig: string;
  /** The path of metadata.lua. */
  readonly metadataFilter: string;
}

/** The part of a configuration that is read. */
interface Bootstrap {
  readonly admin: { address: Address };
  readonly static_resources: { readonly listeners: Listener[]; readonly clusters: Cluster[] };
}

interface Address {
  socket_address: { address: string; port_value: number };
}

interface Listener {
  address: Address;
}

interface Cluster {
  readonly name: string;
  load_assignment: { cluster_name: string; endpoints: unknown };
}

/**
 * Replaces the addresses and paths of a configuration.
 *
 * @throws Error if a cluster gets no servers
 */
export function renderEdge(template: string, settings: EdgeSettings): string {
  const bootstrap: Bootstrap = parse(template);
  const { admin, static_resources } = bootstrap;
  admin.address = addressOf(`127.0.0.1:${settings.adminPort}`);
  static_resources.listeners.forEach((listener, index) => {
    const port = settings.port === 0 ? 0 : settings.port + index;
    listener.address = addressOf(`${settings.address}:${port}`);
  });
  for (const { name, load_assignment } of static_resources.clusters) {
    const endpoints = backendsOf(settings, name).map((backend) => ({
      endpoint: { address: addressOf(backend) },
    }));
    load_assignment.endpoints = [{ lb_endpoints: endpoints }];
  }
  const paths: Readonly<Record<string, string>> = {
    "envoy/certificate.yaml": settings.certificateConfig,
    "envoy/metadata.lua": settings.metadataFilter,
  };
  return stringify(replaceTexts(bootstrap, paths), { aliasDuplicateObjects: false });
}

function backendsOf({ backends }: EdgeSettings, cluster: string): readonly string[] {
  const found = isList(backends) ? backends : backends[cluster];
  if (found === undefined || found.length === 0) throw new Error(`the cluster ${cluster} has no servers`);
  return found;
}

function isList(backends: EdgeSettings["backends"]): backends is readonly string[] {
  return Array.isArray(backends);
}

/** Replaces the files in certificate.yaml; Envoy watches their directory. */
export function renderCertificate(template: string, files: { directory: string }): string {
  return template.replaceAll("data/tls", files.directory);
}

function addressOf(authority: string): Address {
  const colon = authority.lastIndexOf(":");
  const host = authority.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  return { socket_address: { address: host, port_value: Number(authority.slice(colon + 1)) } };
}

function replaceTexts(value: unknown, texts: Readonly<Record<string, string>>): unknown {
  if (typeof value === "string") return texts[value] ?? value;
  if (Array.isArray(value)) return value.map((item) => replaceTexts(item, texts));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, replaceTexts(item, texts)]));
}
