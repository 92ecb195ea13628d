/** Explains why tests were skipped: what is missing, and how to install it. */
import { readFileSync } from "node:fs";
import { isMissing } from "../interop/tools.ts";

/** A skipped test. */
export interface SkippedTest {
  /** The path of its file. */
  readonly file: string;
  /** Its name, preceded by the names of its groups. */
  readonly name: string;
}

const withGo = (module: string): string => `go install ${module}`;
const withApt = (name: string): string => `apt-get install ${name}`;
const as = (step: string): string => `as ${step} in .ci/run does`;

/** Install commands on Debian, by the program names in test titles. */
export const installations: Readonly<Record<string, string>> = {
  age: withGo("filippo.io/age/cmd/...@v1.3.2"),
  "age-encryption": "npm ci --ignore-scripts --prefix extensions/age/test/node",
  "age-keygen": withGo("filippo.io/age/cmd/...@v1.3.2"),
  bash: withApt("bash"),
  "Bouncy Castle": as("install_java_libraries"),
  "check-jsonschema": as("install_deploy_linters"),
  "chromium-headless-shell": withApt("chromium-headless-shell"),
  connectconformance: withGo("connectrpc.com/conformance/cmd/connectconformance@v1.0.5"),
  curl: withApt("curl"),
  envoy: as("install_envoy"),
  fish: withApt("fish"),
  git: withApt("git"),
  go: "https://go.dev/dl, version 1.26 or newer",
  "google-cloud-kms": as("install_python"),
  grpcurl: withGo("github.com/fullstorydev/grpcurl/cmd/grpcurl@latest"),
  hadolint: as("install_deploy_linters"),
  helm: as("install_deploy_linters"),
  ip: withApt("iproute2"),
  java: withApt("default-jdk-headless"),
  javac: withApt("default-jdk-headless"),
  logrotate: withApt("logrotate"),
  mvn: withApt("maven"),
  "npm run native": "npm run native",
  openssl: `${withApt("openssl")}, from Debian 13 for version 3.5`,
  "openapi-generator": as("install_openapi_tools"),
  "openapi-python-client": as("install_openapi_tools"),
  PostgreSQL: withApt("postgresql"),
  prometheus: withApt("prometheus"),
  promtool: withApt("prometheus"),
  protoc: withApt("protobuf-compiler"),
  "protoc-gen-go": withGo("google.golang.org/protobuf/cmd/protoc-gen-go@latest"),
  psql: withApt("postgresql"),
  Python: as("install_python"),
  python3: withApt("python3"),
  QSP_TEST_LONG: "export QSP_TEST_LONG=1",
  QSP_TEST_VECTORS: "export QSP_TEST_VECTORS=… with the folder of the official vectors",
  root: "run the tests as root",
  schemathesis: as("install_openapi_tools"),
  script: withApt("bsdutils"),
  securesystemslib: as("install_python"),
  sops: withGo("github.com/getsops/sops/v3/cmd/sops@v3.13.3"),
  strace: withApt("strace"),
  "systemd-analyze": withApt("systemd"),
  tun: "modprobe tun; a container needs /dev/net/tun and CAP_NET_ADMIN",
  unshare: "util-linux, and the right to create user namespaces",
  wg: withApt("wireguard-tools"),
  wireguard: withGo("golang.zx2c4.com/wireguard@v0.0.0-20260522210424-ecfc5a8d5446"),
  zsh: withApt("zsh"),
};

/** The reason for tests whose titles state none. */
const unknown = "something else";
/** Programs for which test files are named. */
const maxFiles = 5;

/** Formats the summary: one line per missing program, with the number of its tests. Empty if no test was skipped. */
export function describeSkipped(tests: readonly SkippedTest[], isAbsent = isMissing): string {
  if (tests.length === 0) return "";
  const byReason = Map.groupBy(
    tests.flatMap((test) => findReasons(test, isAbsent).map((reason) => ({ reason, test }))),
    ({ reason }) => reason,
  );
  const rows = [...byReason].sort(([, one], [, other]) => other.length - one.length);
  const width = Math.max(...rows.map(([reason]) => reason.length));
  const lines = rows.map(([reason, found]) => {
    const files = [...new Set(found.map(({ test }) => test.file))];
    const more = files.length > maxFiles ? ", …" : "";
    const remedy = installations[reason] ?? `in ${files.slice(0, maxFiles).join(", ")}${more}`;
    return `${String(found.length).padStart(6)}  ${reason.padEnd(width)}  ${remedy}`;
  });
  return `Skipped tests: ${tests.length}. They need:\n${lines.join("\n")}\n`;
}

/** Finds what a test is missing: as its title states, or as its file requires. */
function findReasons({ file, name }: SkippedTest, isAbsent: typeof isMissing): string[] {
  const [, needs] = /\bneeds (.*)/.exec(name) ?? [];
  if (needs !== undefined) {
    const named = Object.keys(installations).filter((word) =>
      new RegExp(`(?<![\\w-])${word}(?![\\w-])`, "i").test(needs),
    );
    // A title may list several programs, only some of which are missing, or a version newer than the installed one.
    const absent = named.filter((word) => !isProgram(word) || isAbsent(word));
    if (named.length > 0) return absent.length > 0 ? absent : named;
  }
  const asked = readFileSync(file, "utf8").matchAll(/\bisMissing\("([\w-]+)"\)|\b(QSP_TEST_[A-Z]+)\b/g);
  const found = [...asked].map(([, program = "", variable = ""]) => program || variable);
  const absent = [...new Set(found)].filter(
    (word) => word in installations && (isProgram(word) ? isAbsent(word) : !process.env[word]),
  );
  return absent.length > 0 ? absent : [unknown];
}

/** Whether a word can be the name of a program in PATH. */
function isProgram(word: string): boolean {
  return (
    /^[a-z][a-z0-9-]*$/.test(word) && !["root", "tun", "securesystemslib", "google-cloud-kms"].includes(word)
  );
}
