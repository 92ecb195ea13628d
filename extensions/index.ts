/** The extensions of `qsp`, in display order. To leave one out, delete its two lines here and its folder. */
import type { Extension } from "../src/extension.ts";
import { age } from "./age/extension.ts";
import { certificateRequests } from "./certificate-requests/extension.ts";
import { envoyAuth } from "./envoy-auth/extension.ts";
import { googleKms } from "./google-kms/extension.ts";
import { kubernetes } from "./kubernetes/extension.ts";
import { oauth } from "./oauth/extension.ts";
import { signatureFormats } from "./signature-formats/extension.ts";
import { sigstore } from "./sigstore/extension.ts";
import { tlog } from "./tlog/extension.ts";
import { top } from "./top/extension.ts";
import { tracing } from "./tracing/extension.ts";
import { tuf } from "./tuf/extension.ts";
import { wireguard } from "./wireguard/extension.ts";

export const extensions: readonly Extension[] = [
  oauth,
  tlog,
  envoyAuth,
  googleKms,
  kubernetes,
  signatureFormats,
  certificateRequests,
  sigstore,
  age,
  wireguard,
  tuf,
  top,
  tracing,
];
