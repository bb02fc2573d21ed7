import { defineConfig } from 'vitest/config'

/** Machines that really boot, under emulation: one file at a time, and all the time they need. */
export default defineConfig({
  test: {
    include: ['test/e2e/**/*.test.ts'],
    globalSetup: 'test/e2e/setup.ts',
    testTimeout: 20 * 60_000,
    hookTimeout: 20 * 60_000,
    maxWorkers: 1,
    bail: 1,
  },
})
