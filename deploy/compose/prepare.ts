/**
 * Creates the files that compose.yaml mounts, in the folder `local` next to this file: `node
 * deploy/compose/prepare.ts`.
 *
 * Run it as the user in QSP_UID, since only this user may read the files. A second run renders the configuration
 * again, issues a new certificate, and keeps the secrets.
 */
import { randomBytes } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderCertificate, renderEdge } from "../../envoy/render.ts";
import { runCommand } from "../../envoy/servers.ts";

const envoyFolder = join(import.meta.dirname, "../../envoy");
/** File names that compose.yaml mounts. */
const servers = ["qsp-1:8080", "qsp-2:8080", "qsp-3:8080"];
const mountedEnvoy = "/etc/envoy";
const mountedTls = "/etc/envoy-tls";

/**
 * Fills the folder with secrets, certificates and Envoy's configuration.
 *
 * @throws ServerEnded if the certificates cannot be issued; the command has printed the reason
 */
export async function prepare(directory: string): Promise<void> {
  // No other user can enter this folder. PostgreSQL runs as a different user and must be able to read its password.
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const name of ["envoy", "metrics"]) mkdirSync(join(directory, name), { recursive: true, mode: 0o700 });
  const password = keepSecret(join(directory, "postgres.password"), 0o644);
  keepSecret(join(directory, "master.key"), 0o600);
  keepSecret(join(directory, "grafana.password"), 0o600);
  // Docker would create a folder in place of a missing file. Put the output of `qsp client add` here.
  writeNew(join(directory, "prometheus.secret"), "", 0o600);
  writeFileSync(
    join(directory, "server.env"),
    `QSP_DATABASE_URL=postgres://qsp:${password}@postgres:5432/qsp\n`,
    {
      mode: 0o600,
    },
  );
  writeEnvoy(join(directory, "envoy"));
  // Certificates are in the tls folder of a data directory.
  const store = ["--data-dir", directory];
  if (!existsSync(join(directory, "tls/ca.crt"))) await runCommand(["ca", "init", ...store]);
  await runCommand(["ca", "issue", "localhost", "127.0.0.1", ...store]);
}

/**
 * Creates a 256-bit secret, or reads the one from an earlier run.
 *
 * @returns 64 hexadecimal digits
 */
function keepSecret(path: string, mode: number): string {
  writeNew(path, `${randomBytes(32).toString("hex")}\n`, mode);
  return readFileSync(path, "utf8").trim();
}

function writeNew(path: string, content: string, mode: number): void {
  if (!existsSync(path)) writeFileSync(path, content, { mode, flag: "wx" });
}

function writeEnvoy(directory: string): void {
  const read = (name: string): string => readFileSync(join(envoyFolder, name), "utf8");
  const rendered = renderEdge(read("envoy.yaml"), {
    address: "0.0.0.0",
    port: 8443,
    adminPort: 9901,
    backends: servers,
    certificateConfig: `${mountedEnvoy}/certificate.yaml`,
    metadataFilter: `${mountedEnvoy}/metadata.lua`,
  });
  writeFileSync(join(directory, "envoy.yaml"), rendered);
  const certificate = renderCertificate(read("certificate.yaml"), { directory: mountedTls });
  writeFileSync(join(directory, "certificate.yaml"), certificate);
  copyFileSync(join(envoyFolder, "metadata.lua"), join(directory, "metadata.lua"));
}

if (import.meta.main) await prepare(join(import.meta.dirname, "local"));
