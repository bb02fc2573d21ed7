import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // They boot machines, and run on their own: npm run test:e2e.
    exclude: ['test/e2e/**', 'node_modules/**'],
    // The machine may be slow: limits are generous, tests wait for events.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Many tests start servers, shells and git: more of them at once would only wait for each other.
    maxWorkers: 2,
  },
})
