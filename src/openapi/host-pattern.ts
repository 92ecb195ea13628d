/** A pattern for a host and port, equivalent to protovalidate's host_and_port rule. */

const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
/** The last label of a name is not all digits, so an IP address cannot be a name. */
const lastLabel = "[0-9]{0,30}[A-Za-z](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?";
const name = `(?:${label}\\.)*${lastLabel}\\.?`;

const byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const ipv4 = `${byte}(?:\\.${byte}){3}`;

const group = "[0-9A-Fa-f]{1,4}";
/** RFC 4291, section 2.2: eight groups, or fewer around one "::". */
const ipv6 = [
  `(?:${group}:){7}${group}`,
  `(?:${group}:){1,7}:`,
  ...[1, 2, 3, 4, 5, 6].map((after) => `(?:${group}:){1,${7 - after}}(?::${group}){1,${after}}`),
  `:(?:(?::${group}){1,7}|:)`,
].join("|");

const port = "(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}|0)";

/** Matches "host:port". Host names have at most 253 characters. */
export const hostAndPortPattern = `^(?:${name}|${ipv4}|\\[(?:${ipv6})\\]):${port}$`;
