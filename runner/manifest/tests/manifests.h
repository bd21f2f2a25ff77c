/* Manifests for tests: one that is valid, with parts that a test can replace. */
#ifndef MANIFEST_TESTS_MANIFESTS_H
#define MANIFEST_TESTS_MANIFESTS_H

#define TEST_LIMITS                                                                                \
    "{\"wallTimeMs\":30000,\"idleMs\":10000,\"cpuMs\":15000,\"memoryMb\":128,\"pids\":64,"         \
    "\"outputKb\":512,\"maxArtifacts\":20,\"maxArtifactBytes\":4194304}"

/* rest: further members, each with a comma before it */
#define TEST_MANIFEST(name, version, aliases, rest)                                                \
    "{\"language\":\"" name "\",\"version\":\"" version "\",\"aliases\":" aliases                  \
    ",\"image\":\"img\",\"entrypoint\":\"main\",\"compile\":null,\"run\":[\"run\",\"it\"],"        \
    "\"interactive\":true,\"defaultLimits\":" TEST_LIMITS rest "}"

#endif
