/** Google's own client for Python, google-cloud-kms, over gRPC and over REST. */
import { testGoogleKeys } from "./keys-story.ts";
import { pythonProgram } from "./programs.ts";
import { testGoogleCalls } from "./story.ts";

testGoogleCalls(pythonProgram);
testGoogleKeys(pythonProgram);
