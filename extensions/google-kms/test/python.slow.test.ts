/** Google's Python client, google-cloud-kms, over gRPC and REST. */
import { testGoogleKeys } from "./keys-story.ts";
import { pythonProgram } from "./programs.ts";
import { testGoogleCalls } from "./story.ts";

testGoogleCalls(pythonProgram);
testGoogleKeys(pythonProgram);
