/** Google's own client for Python, google-cloud-kms, over gRPC and over REST. */
import { testGoogleKeys } from "./google-keys-story.ts";
import { pythonProgram } from "./google-programs.ts";
import { testGoogleCalls } from "./google-story.ts";

testGoogleCalls(pythonProgram);
testGoogleKeys(pythonProgram);
