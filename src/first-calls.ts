/**
 * The text that a server, or the gateway in front of it, prints at startup: its address, and calls to try.
 */

export interface FirstCallsOptions {
  /** "http://127.0.0.1:8080". */
  readonly url: string;
  readonly auth: "open" | "token";
  /** The CA file that TLS clients must trust. */
  readonly caFile: string;
}

/** The address for a browser, and lines for a shell. */
export function describeFirstSteps(options: FirstCallsOptions): string {
  const url = toReachableUrl(options.url);
  return `In a browser, open ${url}

Try, in another terminal:

${firstCalls({ ...options, url })}`;
}

/** Replaces the wildcard address of a server, to which clients cannot connect. */
function toReachableUrl(url: string): string {
  return url.replace(/\/\/(0\.0\.0\.0|\[::\]):/, "//localhost:");
}

function firstCalls({ url, auth, caFile }: FirstCallsOptions): string {
  const isTls = url.startsWith("https:");
  const curl = isTls ? `curl -s --cacert ${caFile}` : "curl -s";
  const grpcurl = isTls ? `grpcurl -cacert ${caFile}` : "grpcurl -plaintext";
  // With its port: URL omits 443 and 80, without which grpcurl cannot connect.
  const authority = url.replace(/^https?:\/\//, "");
  const json = "-H 'content-type: application/json'";
  const lines =
    auth === "open"
      ? [
          `${curl} ${url}/api/grpc/sign ${json} -d '{"data":"aGVsbG8="}'`,
          `${curl} ${url}/api/auth/token ${json} -d '{"username":"ada"}'`,
          `${grpcurl} -d '{"algorithm":"ML-KEM-768"}' ${authority} pqc.PqcService/ExchangeKeys`,
        ]
      : [
          `${curl} ${url}/api/hello`,
          `${curl} ${url}/api/auth/token ${json} -d '{"username":"NAME","password":"PASSWORD"}'`,
          `${grpcurl} ${authority} list`,
        ];
  return lines.map((line) => `  ${line}`).join("\n");
}
