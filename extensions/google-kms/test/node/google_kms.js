/**
 * Calls a key service with @google-cloud/kms, over gRPC and REST.
 *
 * It reads one call per line from standard input and writes one outcome per line, both as JSON in the format
 * of ../python/google_kms.py. Its arguments are the server's address, "127.0.0.1:port", and the name under
 * which the library is installed.
 */
import { createInterface } from "node:readline";
import { credentials } from "@grpc/grpc-js";
import { GoogleAuth, OAuth2Client, PassThroughClient } from "google-auth-library";

const [, , authority, library] = process.argv;
const { KeyManagementServiceClient } = await import(library);
const timeout = 20_000;

function connect(transport, token) {
  const [apiEndpoint, port] = authority.split(":");
  const authClient = new PassThroughClient();
  if (transport === "grpc")
    return new KeyManagementServiceClient({
      apiEndpoint,
      port: Number(port),
      sslCreds: credentials.createInsecure(),
      authClient,
    });
  const bearer = new OAuth2Client();
  bearer.setCredentials({ access_token: token });
  return new KeyManagementServiceClient({
    apiEndpoint,
    port: Number(port),
    protocol: "http",
    fallback: true,
    auth: new GoogleAuth({ authClient: token === "" ? authClient : bearer }),
  });
}

const toCamelCase = (name) => name.replaceAll(/_([a-z0-9])/g, (_all, letter) => letter.toUpperCase());

const toSnakeCase = (name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Converts a request for the library: camel-case names, and messages for wrappers, masks and durations. */
function toRequest(value, name = "") {
  if (name === "updateMask") return { paths: value.split(",").map(toSnakeCase) };
  if (name === "destroyScheduledDuration") return { seconds: Number.parseInt(value, 10) };
  if (name.endsWith("Crc32c")) return { value };
  if (name === "labels" || typeof value !== "object") return value;
  const members = Object.entries(value).map(([key, member]) => {
    const camel = toCamelCase(key);
    return [camel, toRequest(member, camel)];
  });
  return Object.fromEntries(members);
}

/**
 * Converts an answer to JSON: bytes as base64, times as text, wrappers as their values. Absent fields stay
 * absent.
 */
function toJson(value, name = "") {
  if (Array.isArray(value)) return value.map((element) => toJson(element));
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (typeof value !== "object" || value === null) return value;
  if (name.endsWith("Duration")) return `${value.seconds}s`;
  if ("seconds" in value) return new Date(Number(value.seconds) * 1000).toISOString();
  if (Object.keys(value).join() === "value") return value.value;
  const members = Object.entries(value).filter(([, member]) => member !== null && member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, toJson(member, name)]));
}

/** Over REST, version 5 throws its HTTP library's error, whose message is the response body. */
function describe(error) {
  const isHttp = error.constructor.name === "GaxiosError";
  const { error: body } = isHttp ? JSON.parse(error.message) : {};
  const info = body?.details.find((detail) => detail["@type"].endsWith("google.rpc.ErrorInfo")) ?? error;
  return {
    class: error.constructor.name,
    code: body?.status ?? error.code,
    reason: info.reason,
    domain: info.domain,
    metadata: body ? info.metadata : error.errorInfoMetadata,
    message: body?.message ?? error.message,
  };
}

const clients = new Map();

async function call({ transport, method, request, token = "" }) {
  const key = `${transport} ${token}`;
  const client = clients.get(key) ?? connect(transport, token);
  clients.set(key, client);
  const isBearer = transport === "grpc" && token !== "";
  const headers = isBearer ? { authorization: `Bearer ${token}` } : {};
  const options = { timeout, otherArgs: { headers } };
  const rpc = toCamelCase(method);
  try {
    if (method.startsWith("list_")) {
      const rows = [];
      for await (const row of client[`${rpc}Async`](toRequest(request), options)) rows.push(toJson(row));
      return { answer: rows };
    }
    const [answer] = [await client[rpc](toRequest(request), options)].flat();
    return { answer: toJson(answer) };
  } catch (error) {
    return { error: describe(error) };
  }
}

for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await call(JSON.parse(line)))}\n`);
process.exit();
